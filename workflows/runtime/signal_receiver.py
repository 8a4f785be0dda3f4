"""The signals of a job or project: handlers put them into the inbox, opened between steps.

The command line sends the same as an update, which is refused at once or answered with the act.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.workflow import HandlerUnfinishedPolicy

from protocol.notices import PersonAct
from protocol.payload_reading import InvalidPayload
from protocol.payloads import SIGNALS, UPDATE, ReceivedSignal
from workflows.runtime.inbox import Inbox, PayloadReader, read_inbox_payload

AT_ONCE = 500
"""Most signals handled in one workflow task, which the SDK ends after two seconds."""


class SignalReceiver:
    """A workflow with an inbox; it has a handler for each row of `SIGNALS`."""

    def __init__(self, read: PayloadReader = read_inbox_payload) -> None:
        self.inbox = Inbox(read)
        self._task_events = 0
        """Length of the history at the start of the workflow task that handled the last signal."""
        self._handled = 0
        """Signals handled in that task."""

    async def next_signal(self) -> ReceivedSignal:
        """Return the signal to handle next: the oldest, but a cancellation before all others."""
        oldest, events = self.inbox.signals[0], workflow.info().get_current_history_length()
        self._handled = self._handled + 1 if events == self._task_events else 0
        self._task_events = events
        cancel = self.inbox.find_cancel()
        if cancel in (None, oldest) and self._handled < AT_ONCE:
            return oldest
        if cancel is None:
            # The timer ends the task.
            await workflow.sleep(timedelta(milliseconds=1))
        return self.inbox.find_cancel() or oldest

    def refusal_reason(self, received: ReceivedSignal) -> str:
        """Return why a signal cannot apply as things are; empty if it may."""
        return ""

    def act_of(self, received: ReceivedSignal) -> PersonAct | None:
        """Return what came of a signal, once that is settled."""
        return received.act

    @workflow.update(
        name=UPDATE,
        description='"pause", {} is the signal pause, answered with what came of it.',
        unfinished_policy=HandlerUnfinishedPolicy.ABANDON,
    )
    async def apply_signal(self, signal: str, *payload: Any) -> dict[str, Any] | None:
        """Apply a signal; return the act, or None if another run will take it."""
        received = self.inbox.read_signal(signal, payload, int(workflow.time()))
        self.inbox.add(received)
        await workflow.wait_condition(
            lambda: self.act_of(received) is not None or self.inbox.is_closed
        )
        act = self.act_of(received)
        return act.model_dump(exclude_defaults=True) if act else None

    @apply_signal.validator
    def check_signal(self, signal: str, *payload: Any) -> None:
        """Refuse what cannot apply. What is still unread may make it apply."""
        received = self.inbox.read_signal(signal, payload, 0)
        if not self.inbox.signals and (why := self.refusal_reason(received)):
            raise InvalidPayload(why)

    @workflow.signal(description=SIGNALS["rewind"].example)
    def rewind(self, *payload: Any) -> None:
        self._put("rewind", payload)

    @workflow.signal(description=SIGNALS["cancel"].example)
    def cancel(self, *payload: Any) -> None:
        self._put("cancel", payload)

    @workflow.signal(description=SIGNALS["pause"].example)
    def pause(self, *payload: Any) -> None:
        self._put("pause", payload)

    @workflow.signal(description=SIGNALS["resume"].example)
    def resume(self, *payload: Any) -> None:
        self._put("resume", payload)

    @workflow.signal(description=SIGNALS["limit"].example)
    def limit(self, *payload: Any) -> None:
        self._put("limit", payload)

    @workflow.signal(description=SIGNALS["answer"].example)
    def answer(self, *payload: Any) -> None:
        self._put("answer", payload)

    @workflow.signal(description=SIGNALS["approve"].example)
    def approve(self, *payload: Any) -> None:
        self._put("approve", payload)

    @workflow.signal(description=SIGNALS["deny"].example)
    def deny(self, *payload: Any) -> None:
        self._put("deny", payload)

    @workflow.signal(description=SIGNALS["bypass"].example)
    def bypass(self, *payload: Any) -> None:
        self._put("bypass", payload)

    @workflow.signal(description=SIGNALS["tell"].example)
    def tell(self, *payload: Any) -> None:
        self._put("tell", payload)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, payload: Sequence[RawValue]) -> None:
        """Refuse a signal of unknown name visibly."""
        self.inbox.put(name, ())

    def _put(self, signal: str, payload: tuple[Any, ...]) -> None:
        self.inbox.put(signal, payload, int(workflow.time()))

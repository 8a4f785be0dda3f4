"""The inbox: incoming signals, checked, in order, carried over continue-as-new."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from temporalio import workflow

from protocol.notices import MAX_NOTICES, Notice, PersonAct, Topic, as_notice
from protocol.payload_reading import InvalidPayload, read_signal_payload
from protocol.payloads import ReceivedSignal
from protocol.short_text import one_line

MOST_LEFT_OUT = 20
"""Most names of signals that the notice of those left out has."""
MAX_SIGNALS = 1000
MOST_NAME = 100
MAX_BYTES = 500_000
"""Most bytes of all unhandled signals: they must fit into one payload when carried over."""
FULL = "refused: too many signals are waiting; send these again later: "


class InboxFull(InvalidPayload):
    """There is no room for a further signal."""

    def __init__(self) -> None:
        super().__init__("too many signals are waiting; send it again later")


PayloadReader = Callable[[str, tuple[Any, ...]], dict[str, Any]]
"""Checks a signal's payload; raises InvalidPayload."""


def read_inbox_payload(signal: str, values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the payload of a job's signal. Raises InvalidPayload."""
    return read_signal_payload(signal, values).model_dump(exclude_unset=True)


@dataclass
class Inbox:
    """Signals are put in by handlers and taken out by the job between steps."""

    read: PayloadReader = read_inbox_payload
    signals: list[ReceivedSignal] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    """What was refused or done differently than requested, newest last, for people."""
    refused: int = 0
    is_closed: bool = False
    """Whether this run takes nothing out any more."""
    _bytes: int = 0
    """Size of the payloads in `signals`, or more."""
    _left_out: dict[str, int] = field(default_factory=dict)
    """How many signals of each name did not fit, since the last one that did."""
    _left_out_notice: Notice | None = None

    def put(self, signal: str, values: tuple[Any, ...], at: int = 0) -> None:
        """Add a signal. An unusable one becomes a visible refusal.

        Args:
            at: Time of arrival, epoch seconds.
        """
        try:
            self.add(self.read_signal(signal, values, at))
        except InboxFull:
            self._leave_out(signal)
        except InvalidPayload as refusal:
            self.refuse(signal, str(refusal), _signal_sender(values))

    def read_signal(self, signal: str, values: tuple[Any, ...], at: int) -> ReceivedSignal:
        """Return a signal for which there is room. Raises InvalidPayload."""
        if not self.signals:
            self._bytes = 0
        # A cancellation makes all others needless, so one is always taken.
        cancels = signal == "cancel" and not self.has_cancel()
        # Those that do not fit are not even read: thousands may come in one workflow task.
        if len(self.signals) >= MAX_SIGNALS and not cancels:
            raise InboxFull
        received = ReceivedSignal(signal=signal, payload=self.read(signal, values), at=at)
        if self._bytes + _signal_size(received) > MAX_BYTES and not cancels:
            raise InboxFull
        return received

    def add(self, received: ReceivedSignal) -> None:
        self._bytes += _signal_size(received)
        self._left_out = {}
        self.signals.append(received)

    def restore(self, signals: list[ReceivedSignal], notices: list[Notice]) -> None:
        """Put back what the previous run had not handled, before what has come since."""
        self.signals[:0] = signals
        self.notices[:0] = notices
        self._bytes += sum(map(_signal_size, signals))

    def _leave_out(self, signal: str) -> None:
        """Refuse a signal for which there is no room; one notice counts all of them."""
        self.refused += 1
        name = one_line(signal, MOST_NAME)
        if name in self._left_out or len(self._left_out) < MOST_LEFT_OUT:
            self._left_out[name] = self._left_out.get(name, 0) + 1
        counts = ", ".join(f"{count} {name}" for name, count in self._left_out.items())
        left_out = as_notice(Notice(text=f"{FULL}{counts}", topic="refused signal"))
        self.notices = [each for each in self.notices if each is not self._left_out_notice]
        self.notices, self._left_out_notice = [*self.notices, left_out][-MAX_NOTICES:], left_out

    async def close(self) -> None:
        """Let updates be answered before the run ends."""
        self.is_closed = True
        await workflow.wait_condition(workflow.all_handlers_finished)

    def refuse(self, signal: str, why: str, by: str = "") -> None:
        act = PersonAct(at=0, by=by, signal=signal[:MOST_NAME], did="", refused=why)
        self.refused += 1
        self.notice(act.notice)

    def refuse_late_signals(self) -> bool:
        """Refuse signals that came after the result was written; return whether there were any."""
        for received in self.signals:
            self.refuse(received.signal, "it came too late, the result was written", received.by)
        return bool(self.signals)

    def notice(self, event: str | Notice, topic: Topic = "") -> None:
        if isinstance(event, str):
            event = Notice(text=event, topic=topic)
        # What was left out stays the last while those that fitted are handled, each with a notice.
        last = [self._left_out_notice] if self._left_out and self._left_out_notice else []
        before = [each for each in self.notices if each not in last]
        self.notices = [*before, as_notice(event), *last][-MAX_NOTICES:]

    def withdraw_notices(self, topic: Topic, step: int) -> None:
        """Remove the notices about this of one step."""
        self.notices = [each for each in self.notices if (each.topic, each.step) != (topic, step)]

    def notice_moved_aside(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.notice(f"moved to lost+found: {path}")

    def find_cancel(self) -> ReceivedSignal | None:
        """Return the signal that cancels the job, if there is one: no other matters then."""
        return next((received for received in self.signals if received.signal == "cancel"), None)

    def has_cancel(self) -> bool:
        return self.find_cancel() is not None

    def has_halt(self) -> bool:
        """Whether a person wants to pause the job, or to resume it."""
        return any(received.signal in ("pause", "resume") for received in self.signals)

    def has_urgent(self, phases: Container[int]) -> bool:
        """Whether a signal must not wait for the step in flight.

        Args:
            phases: Existing phase numbers; a rewind to another one will only be refused.
        """
        for received in self.signals:
            phase = received.payload.get("phase")
            if received.signal == "rewind" and (phase is None or phase in phases):
                return True
        return self.has_cancel()


def _signal_sender(values: tuple[Any, ...]) -> str:
    """Return `ada@host`, or empty if the payload names no sender."""
    by = values[0].get("by") if len(values) == 1 and isinstance(values[0], dict) else None
    return one_line(by, MOST_NAME) if isinstance(by, str) else ""


def _signal_size(received: ReceivedSignal) -> int:
    return len(str(received.payload).encode())

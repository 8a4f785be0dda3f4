"""The inbox: incoming signals, checked, in order, carried over continue-as-new."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from temporalio import workflow

from protocol.notices import MAX_NOTICES, Notice, PersonAct, Topic, as_notice
from protocol.payload_reading import InvalidPayload, read_signal_payload
from protocol.payloads import ReceivedSignal
from protocol.short_text import one_line

MAX_SIGNALS = 1000
MOST_NAME = 100
MAX_BYTES = 500_000
"""Most bytes of all unhandled signals: they must fit into one payload when carried over."""


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

    def put(self, signal: str, values: tuple[Any, ...], at: int = 0) -> None:
        """Add a signal. An unusable one becomes a visible refusal.

        Args:
            at: Time of arrival, epoch seconds.
        """
        try:
            self.add(self.read_signal(signal, values, at))
        except InvalidPayload as refusal:
            self.refuse(signal, str(refusal), _signal_sender(values))

    def read_signal(self, signal: str, values: tuple[Any, ...], at: int) -> ReceivedSignal:
        """Return a signal for which there is room. Raises InvalidPayload."""
        received = ReceivedSignal(signal=signal, payload=self.read(signal, values), at=at)
        payloads = "".join(str(other.payload) for other in (*self.signals, received)).encode()
        if len(self.signals) >= MAX_SIGNALS or len(payloads) > MAX_BYTES:
            raise InvalidPayload("too many signals are waiting; send it again later")
        return received

    def add(self, received: ReceivedSignal) -> None:
        self.signals.append(received)

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
        self.notices = [*self.notices, as_notice(event)][-MAX_NOTICES:]

    def withdraw_notices(self, topic: Topic, step: int) -> None:
        """Remove the notices about this of one step."""
        self.notices = [each for each in self.notices if (each.topic, each.step) != (topic, step)]

    def notice_moved_aside(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.notice(f"moved to lost+found: {path}")

    def has_cancel(self) -> bool:
        """Whether the job is to be cancelled, so that no other signal matters."""
        return any(received.signal == "cancel" for received in self.signals)

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

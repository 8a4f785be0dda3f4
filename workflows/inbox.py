"""The inbox: incoming signals, checked, in order, carried over continue-as-new."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from protocol.payload_reading import InvalidPayload, read_signal_payload
from protocol.payloads import ReceivedSignal
from protocol.short_text import one_line

MAX_NOTICES = 20
MAX_SIGNALS = 1000
MOST_SENDER = 100
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
    notices: list[str] = field(default_factory=list)
    """What was refused or done differently than requested, newest last, for people."""
    refused: int = 0
    sender: str = ""
    """Sender of the signal that is being applied, for notices about it."""

    def put(self, signal: str, values: tuple[Any, ...], at: int = 0) -> None:
        """Add a signal. An unusable one becomes a visible refusal.

        Args:
            at: Time of arrival, epoch seconds.
        """
        try:
            payload = self.read(signal, values)
        except InvalidPayload as refusal:
            self.refuse(f"{refusal}{_signal_sender_note(values)}")
            return
        received = ReceivedSignal(signal=signal, payload=payload, at=at)
        payloads = "".join(str(other.payload) for other in (*self.signals, received)).encode()
        if len(self.signals) >= MAX_SIGNALS or len(payloads) > MAX_BYTES:
            self.refuse(f"signal {signal}: too many signals are waiting; send it again later")
            return
        self.signals.append(received)

    def refuse(self, why: str) -> None:
        self.refused += 1
        sender = f" (sent by {self.sender})" if self.sender else ""
        self.notice(f"refused: {why}{sender}")

    def refuse_late_signals(self) -> bool:
        """Refuse signals that came after the result was written; return whether there were any."""
        for received in self.signals:
            self.refuse(f"signal {received.signal}: it came too late, the result was written")
        return bool(self.signals)

    def notice(self, text: str) -> None:
        self.notices = [*self.notices, text[:500]][-MAX_NOTICES:]

    def withdraw_notices(self, beginning: str) -> None:
        """Remove the notices that begin like this."""
        self.notices = [text for text in self.notices if not text.startswith(beginning)]

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


def _signal_sender_note(values: tuple[Any, ...]) -> str:
    """Return ` (sent by ada@host)`, or empty if the payload names no sender."""
    by = values[0].get("by") if len(values) == 1 and isinstance(values[0], dict) else None
    return f" (sent by {one_line(by, MOST_SENDER)})" if isinstance(by, str) and by else ""

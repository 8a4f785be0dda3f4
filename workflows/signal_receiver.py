"""The signals of a job or project: handlers put them into the inbox, opened between steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue

from protocol.payloads import SIGNALS, SignalSpec
from workflows.inbox import Inbox, PayloadReader, read_inbox_payload


class SignalReceiver:
    """A workflow with an inbox; it has a handler for each row of `SIGNALS`."""

    def __init__(self, read: PayloadReader = read_inbox_payload) -> None:
        self.inbox = Inbox(read)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, payload: Sequence[RawValue]) -> None:
        """Refuse a signal of unknown name visibly."""
        self.inbox.put(name, ())


def _signal_handler(name: str, spec: SignalSpec) -> Callable[..., None]:
    def handle(self: SignalReceiver, *payload: Any) -> None:
        self.inbox.put(name, payload, int(workflow.time()))

    handle.__name__, handle.__doc__ = name, spec.effect
    return workflow.signal(name=name, description=spec.example)(handle)


for _name, _spec in SIGNALS.items():
    setattr(SignalReceiver, _name, _signal_handler(_name, _spec))

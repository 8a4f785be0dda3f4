"""The signals of a job or project: they only put into its inbox, which it opens between moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RawValue

from protocol.payloads import SIGNALS, SignalSpec
from workflows.inbox import Inbox, PayloadReader, read_payload

C = TypeVar("C", bound="type[Any]")


def receive_signals(receiver: C) -> C:
    """Give a class with an inbox a handler for each signal of the table."""
    for name, spec in SIGNALS.items():
        setattr(receiver, name, _handler(name, spec))
    return receiver


def _handler(name: str, spec: SignalSpec) -> Callable[..., None]:
    def handle(self: Any, *payload: Any) -> None:
        self._inbox.put(name, payload)

    handle.__name__, handle.__doc__ = name, spec.effect
    return workflow.signal(name=name, description=spec.example)(handle)


@receive_signals
class Signals:
    """What people can send to a job; see `protocol.payloads` for what each takes."""

    def __init__(self, read: PayloadReader = read_payload) -> None:
        self._inbox = Inbox(read)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, payload: Sequence[RawValue]) -> None:
        """A signal by a name that does not exist is refused visibly."""
        self._inbox.put(name, ())

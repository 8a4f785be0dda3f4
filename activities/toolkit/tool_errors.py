"""Exceptions for tool calls that were not made or are not finished."""

from typing import Any

from protocol.errors import Interruption, Refusal, Unavailable
from protocol.requests import Pending


class ToolError(Refusal):
    """The call cannot be made; the message to the model says what to do instead."""


class DependencyUnavailable(Unavailable):
    """A dependency did not answer, nothing was done; the message says what to do."""


class Unfinished(Interruption):
    """The other side has accepted the call and is still working on it, or asks a question."""

    def __init__(
        self, pending: Pending, held: dict[str, Any] | None = None, *, again: bool = False
    ) -> None:
        """
        Args:
            pending: What the workflow needs in order to continue the call.
            held: Further state for the next turn; stored with the job's files.
            again: Whether to repeat this turn, because it changed nothing.
        """
        self.pending = pending
        self.held = held or {}
        self.again = again
        super().__init__(f"turn {pending.turn} of {pending.key}")

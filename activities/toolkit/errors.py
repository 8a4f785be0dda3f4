"""The ways in which a tool says that a call did not come about, or not yet."""

from typing import Any

from protocol.errors import Interruption, Refusal, Unavailable
from protocol.requests import Pending


class ToolError(Refusal):
    """The call cannot be done; the message goes to the model and says what to do instead."""


class DependencyUnavailable(Unavailable):
    """What a tool needs did not answer and nothing was done; worth another attempt later.

    The message names what was not reached and what to do about it.
    """


class Unfinished(Interruption):
    """The other side has taken the call, and works on it or asks something."""

    def __init__(
        self, pending: Pending, held: dict[str, Any] | None = None, *, again: bool = False
    ) -> None:
        """
        Args:
            pending: What the workflow has to know to go on with it.
            held: What the next turn has to know beside that; stays with the job's files.
            again: Whether this turn comes once more: it has changed nothing.
        """
        self.pending = pending
        self.held = held or {}
        self.again = again
        super().__init__(f"turn {pending.turn} of {pending.key}")

"""What can come of a call that is no result.

Away            the server cannot be reached, and nothing was done
Failed          the server, or the way to it, says that the call cannot be done
Interrupted     the server was lost after the call was sent: it may have been done
"""

from __future__ import annotations

from protocol.errors import Interruption, Refusal, Unavailable


class Away(Unavailable):
    """The server cannot be reached and nothing was done; names it, and what to do."""


class Failed(Refusal):
    """The call was answered with an error; the message is for the model."""

    def __init__(self, message: str, code: int = 0) -> None:
        self.code = code
        super().__init__(message)


class Interrupted(Interruption):
    """The call was sent and no answer came; the message says what happened instead."""

"""Errors of a call to a server.

ServerUnavailable        the server cannot be reached, and nothing was done ServerCallFailed
the server, or the connection to it, reports that the call failed ServerCallInterrupted    the
server was lost after the call was sent: it may have been done
"""

from __future__ import annotations

from protocol.errors import Interruption, Refusal, Unavailable


class ServerUnavailable(Unavailable):
    """The server cannot be reached and nothing was done; the message names it and what to do."""


class ServerCallFailed(Refusal):
    """The call was answered with an error; the message is for the model."""

    def __init__(self, message: str, code: int = 0) -> None:
        self.code = code
        super().__init__(message)


class ServerCallInterrupted(Interruption):
    """The call was sent and no answer came; the message says what happened instead."""

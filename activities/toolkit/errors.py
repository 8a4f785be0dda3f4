"""The two ways in which a tool says that a call did not come about."""

from protocol.errors import Refusal, Unavailable


class ToolError(Refusal):
    """The call cannot be done; the message goes to the model and says what to do instead."""


class Unreached(Unavailable):
    """What a tool needs did not answer and nothing was done; worth another attempt later.

    The message names what was not reached and what to do about it.
    """

"""Helpers that read for an agent: calls of `delegate`, up to four of a reply in parallel."""

from protocol.data_model import Data
from protocol.requests import JobPosition, Reply
from protocol.usage import Usage

DELEGATE = "delegate"
MOST_HELPERS = 4
MAX_HELPER_CALLS = 16
ANSWER_TOKENS = 2000


class Helper(Data):
    """Progress of a helper."""

    call: int
    replies: int = 0
    context: int = 0
    """Tokens of its next request; 0 when unknown."""
    tree: str = ""
    full: bool = False
    done: bool = False
    failure: str = ""
    """Why it cannot answer; empty when it has answered or the call's result gives the reason."""


class HelperRequest(JobPosition):
    """One reply of a helper, with the results of its look-ups."""

    call: int
    number: int
    tree: str = ""
    last: bool = False


class HelperReply(Reply):
    """Reply without a checkpoint: the work of parallel helpers is recorded call by call."""

    usage: Usage
    tree: str = ""
    context: int = 0
    full: bool = False
    done: bool = False

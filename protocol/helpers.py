"""Helpers that read for an agent: calls of `delegate`, up to four of a reply in parallel."""

from __future__ import annotations

from protocol.data_model import Data
from protocol.requests import JobPosition, Reply
from protocol.usage import Usage

DELEGATE = "delegate"
MOST_HELPERS = 4
"""Helpers that run in parallel."""
MAX_HELPER_CALLS = 16
"""Most tool calls that are run from one reply of a helper."""
ANSWER_TOKENS = 2000


class Helper(Data):
    """Progress of a helper."""

    call: int
    """Index of its call in the agent's reply."""
    replies: int = 0
    context: int = 0
    """Tokens of its next request; 0 when unknown."""
    tree: str = ""
    """Hex id of the tree with its conversation and files; empty before the first reply."""
    full: bool = False
    """Whether its conversation has no room for more."""
    done: bool = False
    failure: str = ""
    """Why it cannot answer; empty when it has answered or the call's result gives the reason."""


class HelperRequest(JobPosition):
    """One reply of a helper, with the results of its look-ups."""

    call: int
    number: int
    """Number of its earlier replies."""
    tree: str = ""
    last: bool = False
    """Whether this is the helper's last reply."""


class HelperReply(Reply):
    """Reply without a checkpoint: the work of parallel helpers is recorded call by call."""

    usage: Usage
    tree: str = ""
    context: int = 0
    full: bool = False
    done: bool = False

"""Helpers that read for an agent: calls of `delegate`, up to four of a reply side by side."""

from __future__ import annotations

from protocol.requests import JobPosition, Reply, Usage
from protocol.state import Data

DELEGATE = "delegate"
MOST_HELPERS = 4
"""Side by side."""
MAX_HELPER_CALLS = 16
"""Tool calls of one reply of a helper that are carried out."""
ANSWER_TOKENS = 2000


class Helper(Data):
    """How far a helper has come."""

    call: int
    """Place of its call in the agent's reply."""
    replies: int = 0
    context: int = 0
    """Tokens of its next request, where they are known."""
    tree: str = ""
    """Hex id of the tree with its conversation and files; empty before its first reply."""
    full: bool = False
    """Whether its conversation has no room for more."""
    done: bool = False
    failure: str = ""
    """Why it cannot answer; empty where it has, or where the call itself says what is wrong."""


class HelperRequest(JobPosition):
    """One reply of a helper, with the results of what it looks up."""

    call: int
    number: int
    """How many replies it has given before."""
    tree: str = ""
    last: bool = False
    """No further reply will be asked for."""


class HelperReply(Reply):
    """No checkpoint is made: what several helpers do side by side is recorded call by call."""

    usage: Usage
    tree: str = ""
    context: int = 0
    full: bool = False
    done: bool = False

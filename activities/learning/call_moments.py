"""The calls that traces refer to, as they were when somebody refused or corrected them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root, open_checkpoints
from activities.guards.matching import GuardSituation
from activities.job.conversation_calls import count_newest_results, newest_calls
from activities.job.snapshot import Snapshot
from activities.learning.finished_jobs import UNREADABLE
from activities.toolkit.agent_tools import agent_tools

MAX_TRACES = 50
"""Most traces that are looked up, the newest first."""


@dataclass(frozen=True)
class CallMoment:
    """A call before it was run or refused."""

    situation: GuardSituation
    tools: frozenset[str]
    """The tools that the agent had."""


def find_call_moments(root: Root, rows: Sequence[Row[Any]]) -> list[CallMoment]:
    """Return the moments whose checkpoints are in this workspaces root."""
    moments = (_find_call_moment(root, row) for row in rows[-MAX_TRACES:])
    return [moment for moment in moments if moment]


def calls_in_reply(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the calls of the newest reply by name, with their arguments: none if unreadable.

    Raises:
        LookupError: the newest reply is of another step.
    """
    for call in newest_calls(snapshot.conversation, snapshot.state.step):
        function = call["function"]
        try:
            arguments = json.loads(function["arguments"] or "{}")
        except (ValueError, RecursionError):
            arguments = None
        yield function["name"], arguments if isinstance(arguments, dict) else {}


def _find_call_moment(root: Root, row: Row[Any]) -> CallMoment | None:
    try:
        snapshot = Snapshot.load(open_checkpoints(root, row.job), row.checkpoint)
        tool, arguments = list(calls_in_reply(snapshot))[
            count_newest_results(snapshot.conversation)
        ]
        tools = frozenset(tool.name for tool in agent_tools(snapshot.config))
    except (*UNREADABLE, LookupError):
        return None
    if tool != row.tool:
        return None
    return CallMoment(GuardSituation.from_snapshot(snapshot, "before_tool", tool, arguments), tools)

"""The calls that traces are of, as they stood when somebody refused or corrected them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root, open_checkpoints
from activities.guards.matching import Situation
from activities.job.conversation import answered
from activities.job.snapshot import Snapshot
from activities.learning.finished_jobs import UNREADABLE
from activities.toolkit.equipment import equipment

MOST = 50
"""Traces that are looked up, the newest."""


@dataclass(frozen=True)
class Moment:
    """A call before it was run or refused."""

    now: Situation
    tools: frozenset[str]
    """What the agent had."""


def moments(root: Root, rows: Sequence[Row[Any]]) -> list[Moment]:
    """The moments whose checkpoints are in this workspaces root."""
    found = (_moment(root, row) for row in rows[-MOST:])
    return [moment for moment in found if moment]


def calls_of(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls of the newest reply, by name, with their arguments: none for those unreadable.

    Raises:
        LookupError: the newest reply is of another step.
    """
    for call in snapshot.conversation.calls(snapshot.state.step):
        function = call["function"]
        try:
            arguments = json.loads(function["arguments"] or "{}")
        except (ValueError, RecursionError):
            arguments = None
        yield function["name"], arguments if isinstance(arguments, dict) else {}


def _moment(root: Root, row: Row[Any]) -> Moment | None:
    try:
        snapshot = Snapshot.load(open_checkpoints(root, row.job), row.checkpoint)
        tool, arguments = list(calls_of(snapshot))[answered(snapshot.conversation)]
        tools = frozenset(tool.name for tool in equipment(snapshot.config))
    except (*UNREADABLE, LookupError):
        return None
    if tool != row.tool:
        return None
    return Moment(Situation.from_snapshot(snapshot, "before_tool", tool, arguments), tools)

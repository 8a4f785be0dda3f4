"""Completed jobs, read from their checkpoints."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pygit2
from sqlalchemy import Row

from activities.checkpoints import CheckpointMissing, Checkpoints, Root, open_checkpoints
from activities.checkpoints.workspaces_root import list_job_repositories
from activities.guards.matching import GuardSituation
from activities.job.conversation_calls import count_newest_results, newest_calls
from activities.job.snapshot import Snapshot
from activities.learning.guard_precision import normalise_trace_path
from activities.toolkit.agent_tools import agent_tools
from config.schema.guards import Guard
from protocol.endings import COMPLETION_FILE, JobResult

UNREADABLE = (CheckpointMissing, ValueError, OSError, pygit2.GitError)
"""Errors of reading a repository that is damaged or being forgotten."""


@dataclass(frozen=True)
class FinishedJob:
    completed_at: int
    agent: str
    project: str
    delivered: frozenset[str]
    rules: tuple[Guard, ...]

    def had_guard(self, guard: Guard) -> bool:
        return any(rule.model_copy(update={"stage": guard.stage}) == guard for rule in self.rules)


def finished_jobs(root: Root, most: int | None = None) -> dict[str, FinishedJob]:
    jobs = ((path.stem, read_finished_job(path)) for path in list_job_repositories(root)[:most])
    return {name: job for name, job in jobs if job}


def read_finished_job(repository: Path) -> FinishedJob | None:
    if not (repository / "refs").is_dir():
        return None
    try:
        store = Checkpoints(repository)
        commit = store.tags().get("completed")
        if not commit:
            return None
        snapshot = Snapshot.load(store, commit)
        result = JobResult.model_validate_json(snapshot.read_text(COMPLETION_FILE))
        [entry] = store.log(commit, 1)
    except UNREADABLE:
        return None
    delivered = frozenset(map(normalise_trace_path, result.deliverables))
    project = snapshot.link.id if snapshot.link else ""
    rules = tuple(snapshot.config.rules)
    return FinishedJob(entry.timestamp, snapshot.config.name, project, delivered, rules)


MAX_TRACES = 50
"""Most traces that are looked up, the newest first."""


@dataclass(frozen=True)
class CallMoment:
    """A call before it was run or refused."""

    situation: GuardSituation
    tools: frozenset[str]


def find_call_moments(root: Root, rows: Sequence[Row[Any]]) -> list[CallMoment]:
    moments = (_find_call_moment(root, row) for row in rows[-MAX_TRACES:])
    return [moment for moment in moments if moment]


def calls_in_reply(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the newest reply's calls with arguments. Raises LookupError for another step."""
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

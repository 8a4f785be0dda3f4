"""Replay a proposed guard on what jobs did before it existed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import CheckpointMissing, Checkpoints, Root
from activities.checkpoints.workspaces_root import list_job_repositories
from activities.guards.matching import GuardSituation, would_match_guard
from activities.job.commit_messages import adds_reply
from activities.job.conversation_calls import count_newest_results
from activities.job.snapshot import Snapshot
from activities.learning.call_moments import calls_in_reply
from activities.learning.finished_jobs import UNREADABLE
from activities.learning.guard_precision import approved_calls, was_refusal_wrong
from config.learned_guards import ReplayCounts
from config.schema.guards import Guard

MAX_JOBS = 50
MAX_CHECKPOINTS = 3000
"""Most checkpoints of each job, the newest first."""


def replay_guard(
    root: Root,
    guard: Guard,
    agent: str,
    rows: Sequence[Row[Any]],
    results: Mapping[str, frozenset[str]],
    made_from: Collection[str] = (),
) -> ReplayCounts:
    """Return what the guard would have refused in the agent's jobs, and how much of that wrongly.

    Args:
        root: The workspaces root with the jobs.
        guard: Evaluated for each call on the files before it; conditions on changes only for calls
            that were carried out.
        agent: The agent whose calls count.
        rows: All traces, for what people approved.
        results: Deliverables of each completed job, by the job's folder.
        made_from: Jobs whose traces the guard was made from. There, only wrong refusals count.
    """
    sources = {root.repository(job).stem for job in made_from}
    folders = {row.job: root.repository(row.job).stem for row in rows}
    approved = {(folders[job], step, tool, path) for job, step, tool, path in approved_calls(rows)}
    replayed = ReplayCounts()
    for path in list_job_repositories(root)[:MAX_JOBS]:
        with suppress(*UNREADABLE):
            for step, now in _guard_situations(guard, Checkpoints(path), agent):
                if not would_match_guard(guard, now):
                    continue
                named = str(now.arguments.get("path", ""))
                wrong = was_refusal_wrong(path.stem, step, now.tool, named, approved, results)
                if path.stem in sources and not wrong:
                    replayed.own += 1
                    continue
                replayed.hits += 1
                replayed.wrong += wrong
    return replayed


def _guard_situations(
    guard: Guard, store: Checkpoints, agent: str
) -> Iterator[tuple[int, GuardSituation]]:
    """Return each situation the guard would have seen in a job, with its step."""
    for reply, later in _guard_replay_checkpoints(store, agent):
        for now in _call_situations(guard, store, reply, later):
            yield reply.state.step, now


def _guard_replay_checkpoints(
    store: Checkpoints, agent: str
) -> Iterator[tuple[Snapshot, list[str]]]:
    """Return the checkpoints at which the agent had just made calls, newest first.

    With each come the ids of the checkpoints after it, up to the next reply, oldest first.
    """
    tags = store.tags()
    newest = tags.get("completed") or tags.get("cancelled")
    newest = newest or next(
        (tags[name] for name in reversed(tags) if name.startswith("phase/")), ""
    )
    if not newest:
        return
    later: list[str] = []
    for entry in store.log(newest, MAX_CHECKPOINTS):
        if not adds_reply(entry.message):
            later.append(entry.id)
            continue
        try:
            snapshot = Snapshot.load(store, entry.id)
        except CheckpointMissing:
            return
        if snapshot.config.name != agent:
            return
        yield snapshot, later[::-1]
        later.clear()


def _call_situations(
    guard: Guard, store: Checkpoints, reply: Snapshot, later: Sequence[str]
) -> Iterator[GuardSituation]:
    """Return the situations of a reply's calls; none for a reply of text alone."""
    changes = guard.match.changes is not None
    try:
        calls = list(calls_in_reply(reply))
    except LookupError:
        return
    standing = {0: reply}
    for commit in later if changes or len(calls) > 1 else ():
        try:
            snapshot = Snapshot.load(store, commit)
        except CheckpointMissing:
            return
        if snapshot.state.phase.number != reply.state.phase.number:
            break
        standing.setdefault(count_newest_results(snapshot.conversation), snapshot)
    for place, (tool, arguments) in enumerate(calls):
        if before := standing.get(place):
            after = standing.get(place + 1) if changes else None
            files = after.files if after else None
            yield GuardSituation.from_snapshot(before, guard.point, tool, arguments, "", files)

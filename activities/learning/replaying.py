"""A proposed guard held against what jobs did before it was there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import CheckpointMissing, Checkpoints, Root
from activities.guards.matching import Situation, concerns
from activities.learning.figures import approvals, was_wrong
from activities.snapshot import Snapshot
from config.guarding import Guard
from config.learned import Replayed
from protocol.endings import JobResult

MOST_JOBS = 50
MOST_CHECKPOINTS = 3000
"""Of each job, the newest."""
RESULT = "output/completion.json"


def accepted(root: Root) -> dict[str, set[str]]:
    """The deliverables of each completed job whose repository is here, by the job's folder."""
    found = {}
    for path in _repositories(root):
        store = Checkpoints(path)
        if commit := store.tags().get("completed"):
            try:
                text = Snapshot.load(store, commit).text(RESULT)
                result = JobResult.model_validate_json(text)
            except (CheckpointMissing, ValueError):
                continue
            found[path.stem] = {deliverable.strip("/") for deliverable in result.deliverables}
    return found


def replay(
    root: Root,
    guard: Guard,
    agent: str,
    rows: Sequence[Row[Any]],
    results: Mapping[str, set[str]],
    beat: Callable[[], None],
) -> Replayed:
    """What the guard would have refused in the jobs of the agent, and how much of that wrongly.

    Args:
        root: Whose jobs.
        guard: Of the point before_tool; it is asked of each call as its reply found the files.
        agent: Whose calls.
        rows: All traces, for what people approved.
        results: As `accepted` gives them.
        beat: Called often.
    """
    folders = {row.job: root.repository(row.job).stem for row in rows}
    approved = {(folders[job], step, tool) for job, step, tool in approvals(rows)}
    made = Replayed()
    for path in _repositories(root)[:MOST_JOBS]:
        for snapshot in _replies(Checkpoints(path), agent, beat):
            for tool, arguments in _calls(snapshot):
                kind = snapshot.state.phase.kind
                now = Situation(guard.point, agent, kind, snapshot.files, tool, arguments)
                if concerns(guard, now) is None:
                    continue
                made.hits += 1
                named = str(arguments.get("path", "")).strip("/")
                step = snapshot.state.step
                made.wrong += was_wrong(path.stem, step, tool, named, approved, results)
    return made


def _repositories(root: Root) -> list[Any]:
    """The repositories of jobs, those changed last first."""
    folder = root.path / ".longhaul" / "checkpoints"
    found = [path for path in folder.glob("*.git") if (path / "refs").is_dir()]
    return sorted(found, key=lambda path: (path / "refs" / "tags").stat().st_mtime, reverse=True)


def _replies(store: Checkpoints, agent: str, beat: Callable[[], None]) -> Iterator[Snapshot]:
    """The checkpoints at which the agent had just made calls, newest first."""
    tags = store.tags()
    newest = tags.get("completed") or tags.get("cancelled")
    newest = newest or next(
        (tags[name] for name in reversed(tags) if name.startswith("phase/")), ""
    )
    if not newest:
        return
    for entry in store.log(newest, MOST_CHECKPOINTS):
        beat()
        if "reply: " not in entry.message:
            continue
        try:
            snapshot = Snapshot.load(store, entry.id)
        except CheckpointMissing:
            return
        if snapshot.config.name != agent:
            return
        yield snapshot


def _calls(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    for call in snapshot.conversation.calls(snapshot.state.step):
        function = call["function"]
        try:
            arguments = json.loads(function["arguments"] or "{}")
        except ValueError:
            continue
        if isinstance(arguments, dict):
            yield function["name"], arguments

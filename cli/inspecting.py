"""Reading a job's checkpoints: its files at any phase, and its steps as a story."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Entry,
    Files,
    FilesError,
    LogEntry,
    PathRefused,
    Root,
    RootError,
    open_checkpoints,
)
from activities.snapshot import Snapshot
from cli.jobs import look
from cli.output import Mistake
from engine.connection import workspaces_root

ALL = 1_000_000


@dataclass(frozen=True)
class Places:
    """Commits of a job: where it is, and where its phases started."""

    newest: str | None
    starts: dict[int, str]


async def places(client: Client, job_id: str) -> Places:
    """What the job says about its checkpoints.

    Raises:
        Mistake: there is no such job.
    """
    status = (await look(client, job_id)).status
    result = status.get("result") or {}
    starts = {
        int(item["phase"]): str(item["id"])
        for item in status.get("checkpoints") or []
        if item.get("id") and item.get("phase") is not None
    }
    return Places(status.get("checkpoint") or result.get("checkpoint"), starts)


def repository(job_id: str) -> Checkpoints:
    """The job's repository below the workspaces root of this environment.

    Raises:
        Mistake: it is not there.
    """
    try:
        return open_checkpoints(Root.open(workspaces_root(), create=False), job_id)
    except RootError as error:
        raise Mistake(str(error)) from None
    except CheckpointMissing:
        raise Mistake(
            f"job {job_id} has no checkpoints under {workspaces_root()}; if it lives elsewhere, "
            "set LONGHAUL_WORKSPACES"
        ) from None


def commit_at(found: Places, store: Checkpoints, phase: int | None) -> str:
    """The newest commit, or with a phase the one it started from.

    Raises:
        Mistake: there is no such phase, or nobody knows the newest commit.
    """
    starts = {**_tagged(store), **found.starts}
    if phase is not None:
        if phase in starts:
            return starts[phase]
        known = ", ".join(map(str, sorted(starts))) or "none yet"
        raise Mistake(f"--at {phase}: no phase of that number started; phases: {known}")
    if found.newest:
        return found.newest
    if starts:
        # Nobody knows better when no worker answers: tags are written at phase starts.
        return starts[max(starts)]
    raise Mistake("the job has made no checkpoint yet")


def _tagged(store: Checkpoints) -> dict[int, str]:
    """Phase starts by the repository's tags."""
    found = {}
    for name, commit in store.tags().items():
        if match := re.fullmatch(r"phase\D*0*(\d+)", name):
            found[int(match.group(1))] = commit
    return found


def files_at(store: Checkpoints, commit: str) -> Files:
    """The workspace as the commit holds it."""
    try:
        return Snapshot.load(store, commit).files
    except CheckpointMissing as error:
        raise Mistake(f"that checkpoint is not in this store: {error}") from None


def listing(files: Files, path: str) -> list[Entry] | bytes:
    """The entries below a folder, or the content of a file.

    Raises:
        Mistake: there is no such path.
    """
    try:
        entry = files.entry(path) if path else None
        if path and (entry is None or entry.kind != "folder"):
            return files.read(path)
        return list(files.walk(path))
    except (FilesError, PathRefused) as error:
        raise Mistake(str(error)) from None


def story(store: Checkpoints, commit: str) -> list[LogEntry]:
    """The job's steps up to a commit, oldest first."""
    try:
        return store.log(commit, ALL)[::-1]
    except CheckpointMissing as error:
        raise Mistake(f"that checkpoint is not in this store: {error}") from None


def entry_data(entry: Entry) -> dict[str, Any]:
    """A file for `--json`."""
    return {"path": entry.path, "kind": entry.kind, "bytes": entry.size}

"""The checkpoint that a fork begins from: fetched, chosen, and copied to the fork."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_args

from pydantic import ValidationError
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Root,
    copy_checkpoint,
    open_checkpoints,
)
from activities.checkpoints.forgotten_records import find_forgotten_record
from activities.checkpoints.remote import remote_owner
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.checkpoints.repository_owner import read_owner
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import phase_tag, phase_tag_commits
from config.schema.agent import ConfigError
from config.schema.workspace import Workspace
from protocol.endings import Outcome
from protocol.payloads import Fork
from protocol.repository_link import EarlierStart

MAX_NAMED = 10
QUERY_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True)
class ForkOrigin:
    checkpoints: Checkpoints
    starts: dict[int, str]
    """Start checkpoints of the first job's phases, by number."""
    snapshot: Snapshot
    phase: int
    ended: bool = False
    """Whether the fork begins at the end of the first job."""

    def earlier_starts(self, job: str) -> list[EarlierStart]:
        """Return the phases before the fork, for its branch: those of `job` and jobs before it."""
        assert self.snapshot.repository is not None
        earlier = self.snapshot.repository.earlier
        known = {start.commit for start in earlier}
        added = [
            EarlierStart(job=job, commit=commit)
            for number, commit in sorted(self.starts.items())
            if number <= self.phase and commit not in known
        ]
        return [*earlier, *added]

    @property
    def document_names(self) -> list[str]:
        files = self.snapshot.files
        if files.entry("documents") is None:
            return []
        return [entry.path.rpartition("/")[2] for entry in files.children("documents")]


async def unforkable_job_error(client: Client, root: Root, job: str) -> ConfigError:
    """Return why the job cannot be forked, with known jobs. Raises RPCError if it stays unknown."""
    if record := find_forgotten_record(root, job):
        return ConfigError(f"fork: {record.message}")
    try:
        known = await client.get_workflow_handle(job).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        newest = sorted(
            root.repository(job).parent.glob("[!.]*.git"),
            key=lambda path: path.stat().st_mtime,
            reverse=True,
        )
        named = (
            mark.job if (mark := read_owner(path)) else path.stem for path in newest[:MAX_NAMED]
        )
        phases = ", ".join(named) or "none"
        return ConfigError(f"fork: there is no job {job!r}; jobs on this workspaces root: {phases}")
    return ConfigError(
        f"fork: job {job!r} has no checkpoints on this workspaces root ({root.path}, id {root.id})."
        f" If it lives on another, start the fork on its task queue, {known.task_queue}"
    )


def fetch_fork_origin(root: Root, fork: Fork, remote: object) -> None:
    """Fetch the first job from the remote that the fork names (unvalidated), if it is not here."""
    with suppress(CheckpointMissing):
        if fork.phase is None:
            if _last_fork_checkpoint(open_checkpoints(root, fork.job)):
                return
        elif fork.phase in phase_tag_commits(open_checkpoints(root, fork.job)):
            return
    try:
        url = Workspace.model_validate({"remote": remote}).remote
    except ValidationError:
        return
    if url and remote_owner(url, fork.job):
        fetch_remote_checkpoints(url, fork.job, open_checkpoints(root, fork.job, create=True))


async def newest_fork_origin_phase(client: Client, job: str) -> int | None:
    """Return the first job's current phase, if it answers: after a reset its tags are too new."""
    try:
        status = await client.get_workflow_handle(job).query(
            "status", result_type=dict[str, Any], rpc_timeout=QUERY_TIMEOUT
        )
    except (WorkflowQueryFailedError, RPCError):
        return None
    return max((each["phase"] for each in status.get("checkpoints") or []), default=None)


def find_fork_origin(root: Root, fork: Fork, newest: int | None) -> ForkOrigin:
    checkpoints = open_checkpoints(root, fork.job)
    starts = {
        number: commit
        for number, commit in phase_tag_commits(checkpoints).items()
        if newest is None or number <= newest
    }
    known = ", ".join(map(str, sorted(starts))) or "none yet"
    at_end = fork.phase is None
    commit = _last_fork_checkpoint(checkpoints) if fork.phase is None else starts.get(fork.phase)
    try:
        snapshot = Snapshot.load(checkpoints, commit) if commit else None
    except CheckpointMissing as error:
        raise _damaged_fork_origin(fork, error) from None
    if snapshot is None and not at_end:
        raise ConfigError(
            f"fork: no phase {fork.phase} of job {fork.job!r} has begun; its phases: {known}"
        )
    phase = snapshot.state.phase.number if snapshot else 0
    # After a Temporal reset, a job that is running again still has the tag of its end.
    if snapshot is None or (at_end and newest is not None and phase > newest):
        raise ConfigError(
            f"fork: job {fork.job!r} has not ended; name a phase to begin from, of which it has: "
            f"{known}"
        )
    return ForkOrigin(checkpoints, starts, snapshot, fork.phase or phase, ended=at_end)


def _last_fork_checkpoint(checkpoints: Checkpoints) -> str | None:
    tags = checkpoints.tags()
    return next((tags[word] for word in get_args(Outcome) if word in tags), None)


def copy_fork_origin(origin: ForkOrigin, fork: Fork, target: Checkpoints) -> Snapshot:
    try:
        history = copy_checkpoint(target, origin.checkpoints, origin.snapshot.commit)
    except CheckpointMissing as error:
        raise _damaged_fork_origin(fork, error) from None
    passed = {entry.id for entry in history}
    for number, commit in origin.starts.items():
        # Skip starts abandoned by a Temporal reset or a lost checkpoint.
        if number <= origin.phase and commit in passed:
            target.tag(phase_tag(number), commit)
    return Snapshot.load(target, origin.snapshot.commit)


def _damaged_fork_origin(fork: Fork, error: CheckpointMissing) -> ConfigError:
    return ConfigError(f"fork: {fork.place} of job {fork.job!r} is damaged in this store: {error}")

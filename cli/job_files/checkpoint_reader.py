"""Reads a job's checkpoints: its files at any phase, and its steps."""

import time
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from typing import get_args

from temporalio.client import Client

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    FileEntry,
    Files,
    FilesError,
    GitNotInstalled,
    LogEntry,
    NewerCheckpoint,
    PathRefused,
    RemoteUnavailable,
    Root,
    RootError,
    open_checkpoints,
)
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import phase_tag_commits
from cli.jobs.job_view import view_job
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.output import UserError, print_note
from cli.temporal_errors import run_server_work
from config.schema.agent import AgentConfig
from engine.connection import connect_client
from engine.root_location import workspaces_root
from protocol.endings import Outcome
from protocol.status import AnyStatus, JobStatus, ProjectStatus, TrialStatus

MAX_LOG_ENTRIES = 1_000_000
MAX_FETCHES = 4
PAUSE_SECONDS = 0.5
"""Seconds between fetches, since the newest checkpoints may not be pushed yet."""
OUTCOME_TAGS: tuple[str, ...] = get_args(Outcome)
"""Names of tags on a job's last checkpoint."""


class StoreMissing(UserError):
    """The job's repository is not in this environment's workspaces root."""


@dataclass(frozen=True)
class CheckpointPlaces:
    """Checkpoints of a job: the newest, and the start of each phase."""

    newest: str | None
    starts: dict[int, str]
    agent: str = ""
    remote: str = ""
    """Address of the remote that checkpoints are pushed to; empty without one."""
    unbegun: str = ""
    """Why the job has no checkpoint yet; empty if it has one."""
    project: str | None = None
    """For a project, the id of one of its jobs, empty if it has none; None for a job."""
    tips: tuple[str, ...] = ()
    """For a project, the newest commits of its product and of its own files."""


async def find_checkpoint_places(client: Client, job_id: str) -> CheckpointPlaces:
    """Return the checkpoints that the job reports; empty if only its repository is left.

    Raises UserError: there is no such job.
    """
    try:
        job_view = await view_job(client, job_id)
    except UserError as error:
        # Temporal deletes closed workflows after its retention period.
        try:
            open_checkpoints_for_reading(job_id)
        except UserError:
            raise error from None
        return CheckpointPlaces(None, {})
    job_view.refuse_trial("has no checkpoints of its own")
    return checkpoint_places_from_status(job_view.status)


def fetch_checkpoint_places(job_id: str) -> CheckpointPlaces:
    """Run `find_checkpoint_places` for a command."""

    async def fetch_places() -> CheckpointPlaces:
        return await find_checkpoint_places(await connect_client(), job_id)

    return run_server_work(fetch_places())


def checkpoint_places_from_status(status: AnyStatus) -> CheckpointPlaces:
    """Like `find_checkpoint_places`, from a job's or a project's status."""
    if isinstance(status, TrialStatus):
        return CheckpointPlaces(None, {})
    agent, remote = status.agent or "", status.remote.url if status.remote else ""
    if isinstance(status, ProjectStatus):
        jobs = [run.job for run in status.running] + [job.job for job in status.jobs[::-1]]
        tips = tuple(filter(None, (status.head, status.state)))
        return CheckpointPlaces(None, {}, agent, remote, project=jobs[0] if jobs else "", tips=tips)
    starts = {item.phase: item.id for item in status.checkpoints}
    newest = _newest_checkpoint(status)
    unbegun = "" if newest or starts or status.phase else _no_checkpoint_reason(status)
    return CheckpointPlaces(newest, starts, agent, remote, unbegun)


def _newest_checkpoint(status: JobStatus) -> str | None:
    return status.checkpoint or (status.result.checkpoint if status.result else None) or None


def _no_checkpoint_reason(status: JobStatus) -> str:
    job = status.job_id
    if status.error:
        how = "failed" if status.status == "failed" else "ended"
        return f"job {job} {how} before its first checkpoint: {status.error}"
    return f"job {job} has not begun yet; `starter.py show {job}` shows its state"


def parse_checkpoint_moment(text: str) -> int | None:
    """Return the phase whose start a person named; None for `now`.

    Raises UserError: it is neither a number nor `now`.
    """
    if text == "now":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UserError(f"{text!r} is no moment of a job: expected the number of a phase, or now")
    return int(text)


def open_checkpoints_for_reading(
    job_id: str, places: CheckpointPlaces | None = None
) -> Checkpoints:
    """Open the job's repository in this environment's workspaces root.

    Args:
        places: What the job reports; missing checkpoints are fetched from its remote, if any.

    Raises:
        StoreMissing: The repository is not there.
    """
    try:
        root = Root.open(workspaces_root(), create=False)
        if places and places.remote:
            _fetch_missing_checkpoints(root, job_id, places)
        return open_checkpoints(root, job_id)
    except RootError as error:
        raise StoreMissing((places and places.unbegun) or str(error)) from None
    except CheckpointMissing:
        if notice := forgotten_job_notice(job_id):
            raise StoreMissing(notice) from None
        if places and places.unbegun:
            raise StoreMissing(places.unbegun) from None
        raise StoreMissing(
            f"job {job_id} has no checkpoints under {workspaces_root()}; if it lives elsewhere, "
            "set LONGHAUL_WORKSPACES"
        ) from None


def _fetch_missing_checkpoints(root: Root, job_id: str, places: CheckpointPlaces) -> None:
    commits = [commit for commit in (places.newest, *places.starts.values()) if commit]
    checkpoints = open_checkpoints(root, job_id, create=True)
    try:
        for attempt in range(MAX_FETCHES + 1):
            missing = [commit for commit in commits if not checkpoints.has_commit(commit)]
            if not missing:
                return
            if attempt < MAX_FETCHES:
                time.sleep(PAUSE_SECONDS if attempt else 0)
                fetch_remote_checkpoints(places.remote, job_id, checkpoints)
    except (GitNotInstalled, RemoteUnavailable) as error:
        print_note(
            f"not all checkpoints are here, and the remote {places.remote} gives none: {error}"
        )
        return
    print_note(
        f"{len(missing)} of {len(commits)} checkpoints are neither here nor in the remote "
        f"{places.remote}; its host may not have pushed them yet: try again later"
    )


def checkpoint_commit_at(places: CheckpointPlaces, store: Checkpoints, phase: int | None) -> str:
    """Return the commit at the start of a phase; for None, the newest.

    Raises UserError: there is no such phase, or no checkpoint yet.
    """
    tagged = phase_tag_commits(store)
    if places.starts:
        # A Temporal reset leaves tags of later phases behind.
        tagged = {phase: tagged[phase] for phase in tagged if phase <= max(places.starts)}
    starts = {**tagged, **places.starts}
    if places.unbegun and not starts:
        # A failed start may leave an empty repository.
        raise UserError(places.unbegun)
    if phase is not None:
        if phase in starts:
            return starts[phase]
        known = ", ".join(map(str, sorted(starts))) or "none yet"
        raise UserError(f"no phase {phase} of this job has started; phases: {known}")
    if places.newest:
        return places.newest
    tags = store.tags()
    for outcome in OUTCOME_TAGS:
        if outcome in tags:
            return tags[outcome]
    if starts:
        # Without an answering worker, phase starts are the newest commits known.
        return starts[max(starts)]
    raise UserError("the job has made no checkpoint yet")


def checkpoint_commits_at(
    job_id: str, places: CheckpointPlaces, *moments: str
) -> tuple[list[str], Checkpoints]:
    """Return the job's commits at these moments, and its repository."""
    phases = [parse_checkpoint_moment(text) for text in moments]
    store = open_checkpoints_for_reading(job_id, places)
    return [checkpoint_commit_at(places, store, phase) for phase in phases], store


def add_checkpoint_fields(status: JobStatus) -> None:
    """Set the newest checkpoint and its tree, by which runs are compared.

    As in a result, the tree is without `shell.volatile`. It is None if the checkpoint is not in
    this environment's workspaces root, or of a later version; nothing is fetched.
    """
    status.checkpoint = _newest_checkpoint(status)
    if status.result and status.result.tree:
        status.tree = status.result.tree
        return
    with suppress(StoreMissing, CheckpointMissing, NewerCheckpoint):
        store = open_checkpoints_for_reading(status.job_id)
        # The commit of a closed job without an answering worker.
        status.checkpoint = status.checkpoint or store.tags().get(status.status)
        if status.checkpoint:
            status.tree = Snapshot.load(store, status.checkpoint).comparable_tree


def volatile_paths_at_checkpoint(store: Checkpoints, commit: str) -> list[str]:
    """Return the patterns of paths whose content differs from run to run."""
    return _read_checkpoint_snapshot(store, commit).config.shell.volatile


def files_at_checkpoint(store: Checkpoints, commit: str) -> Files:
    """Return the workspace files of a commit."""
    return _read_checkpoint_snapshot(store, commit).files


def config_at_checkpoint(store: Checkpoints, commit: str) -> AgentConfig:
    """Return the configuration pinned at a commit."""
    return _read_checkpoint_snapshot(store, commit).config


def _read_checkpoint_snapshot(store: Checkpoints, commit: str) -> Snapshot:
    try:
        return Snapshot.load(store, commit)
    except CheckpointMissing as error:
        raise UserError(f"that checkpoint is not in this store: {error}") from None


def read_checkpoint_path(files: Files, path: str) -> list[FileEntry] | bytes:
    """Return the entries below a folder, or the content of a file.

    Raises UserError: there is no such path.
    """
    try:
        entry = files.entry(path) if path else None
        if path and (entry is None or entry.kind != "folder"):
            return files.read(path)
        return list(files.walk(path))
    except (FilesError, PathRefused) as error:
        raise UserError(str(error)) from None


def checkpoint_file_json(content: bytes) -> dict[str, str]:
    """Return a file's content for `--json`: as text if it is UTF-8, else as base64."""
    try:
        return {"content": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def read_checkpoint_log(store: Checkpoints, commit: str) -> list[LogEntry]:
    """Return the job's steps up to a commit, oldest first."""
    try:
        return store.log(commit, MAX_LOG_ENTRIES)[::-1]
    except CheckpointMissing as error:
        raise UserError(f"that checkpoint is not in this store: {error}") from None

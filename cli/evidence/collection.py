"""Collects the evidence of a job from Temporal and the workspaces root, and writes the archive."""

import gzip
import json
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from temporalio.client import Client

from activities.checkpoints import CheckpointMissing, Checkpoints, NewerCheckpoint, Root
from cli.evidence import run_history
from cli.evidence.archive_file import is_member_path, write_archive
from cli.evidence.derived_documents import derive_documents
from cli.evidence.reachable_objects import walk_reachable_objects
from cli.job_files.checkpoint_reader import (
    MAX_LOG_ENTRIES,
    checkpoint_places_from_status,
    open_checkpoints_for_reading,
)
from cli.jobs.job_view import view_job
from cli.output import UserError
from cli.report.history import find_history_runs
from cli.signing_key import SigningKey
from engine.deployment import unversioned_build_id
from protocol.payload_reading import EncryptedPayloadError
from protocol.status import ProjectStatus

JOB, HISTORIES, REPOSITORY = "job.json", "histories/", "checkpoints.git/"
RESULT_REF = "refs/heads/result"
GIT_FILES = {
    f"{REPOSITORY}HEAD": f"ref: {RESULT_REF}\n".encode(),
    f"{REPOSITORY}config": b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
}
"""Files that git needs to read the extracted repository. No archive has others in their place: git
runs programs that a `config` names."""


@dataclass(frozen=True)
class Collected:
    """What was written."""

    path: Path
    digest: str
    """Of the last record."""
    fingerprint: str
    """Of the key that signed; empty without one."""
    runs: int
    events: int
    checkpoints: int
    objects: int
    remarks: list[str]
    """What the archive lacks."""


async def collect_evidence(
    client: Client, job: str, target: Path, key: SigningKey | None
) -> Collected:
    """Write the archive of a job.

    Raises:
        UserError: there is no such job, it is none, or its checkpoints are not here.
        EncryptedPayloadError: its histories cannot be read without a key.
        OSError: the archive cannot be written.
    """
    view = await view_job(client, job)
    view.refuse_trial("has no checkpoints of its own")
    if isinstance(view.status, ProjectStatus):
        raise UserError(f"{job} is a project; each of its jobs has evidence of its own")
    store = open_checkpoints_for_reading(job, checkpoint_places_from_status(view.status))
    chain = await find_history_runs(client, job, view.run_id)
    runs, following = [], chain.runs
    while following:
        for run_id in following:
            history = await client.get_workflow_handle(job, run_id=run_id).fetch_history()
            runs.append(await run_history.read_run_history(run_id, history, client.data_converter))
        # A running job may have gone on in another run meanwhile.
        following = [run for run in [runs[-1].continued_to] if run]
    if why := run_history.encryption_reason(runs):
        raise EncryptedPayloadError(why)
    remarks = [] if chain.complete else ["its first runs are no longer on the server"]
    with tempfile.TemporaryDirectory() as folder:
        return _write(job, store, runs, target, key, Path(folder), remarks)


def _write(
    job: str,
    store: Checkpoints,
    runs: list[run_history.RunHistory],
    target: Path,
    key: SigningKey | None,
    folder: Path,
    remarks: list[str],
) -> Collected:
    newest = run_history.last_commit(runs)
    if not newest:
        raise UserError(f"job {job} has made no checkpoint yet, so that there is no evidence of it")
    copy = Checkpoints.create(Root.open(folder / "root", create=True), job)
    commits, objects, lost = _copy_checkpoints(store, copy, run_history.named_commits(runs), newest)
    remarks += [f"checkpoint {commit} is not in the workspaces root" for commit in lost]
    try:
        log = copy.log(newest, MAX_LOG_ENTRIES)
        documents = derive_documents(copy, log, runs)
    except (CheckpointMissing, NewerCheckpoint) as error:
        raise UserError(f"the evidence of {job} would not be whole: {error}") from None
    members: dict[str, bytes | Path] = {JOB: _describe(job, runs, newest, lost), **documents}
    for number, run in enumerate(runs, 1):
        text = run.history.to_json().encode()
        members[f"{HISTORIES}{number:04d}-{run.run_id}.json.gz"] = gzip.compress(text, mtime=0)
    members |= _repository_members(copy, newest)
    fingerprint = key.public.fingerprint if key else ""
    digest = write_archive(target, job, members, fingerprint, key.sign if key else None)
    events = sum(len(run.history.events) for run in runs)
    return Collected(target, digest, fingerprint, len(runs), events, commits, objects, remarks)


def _copy_checkpoints(
    store: Checkpoints, copy: Checkpoints, commits: list[str], newest: str
) -> tuple[int, int, list[str]]:
    """Copy checkpoints with all that they consist of.

    Returns:
        The number of checkpoints and of objects copied, and the named ones that are not there.

    Raises:
        UserError: A part of one is missing.
    """
    tags = store.tags()
    lost = [commit for commit in commits if not store.has_commit(commit)]
    roots = [commit for commit in {*commits, *tags.values()} if commit not in lost]
    missing: list[str] = []
    count, checkpoints = 0, 0
    for record in walk_reachable_objects(store.store, sorted(roots), missing):
        copy.store.write(record)
        count += 1
        checkpoints += record.kind == 1
        if copy.is_full:
            copy.pack()
    if missing or newest in lost:
        raise UserError(
            "the evidence would not be whole: the workspaces root lacks "
            f"{', '.join((missing or lost)[:5])}"
        )
    copy.store.write_tree(b"")  # git itself needs it, and the walk leaves it out
    copy.store.flush()
    copy.pack()
    for name, commit in tags.items():
        copy.tag(name, commit)
    copy.set_ref(RESULT_REF, newest)
    return checkpoints, count, lost


def _repository_members(copy: Checkpoints, newest: str) -> dict[str, bytes | Path]:
    """Return the repository's files, so that git can read the extracted archive as it is."""
    members: dict[str, bytes | Path] = dict(GIT_FILES)
    members[f"{REPOSITORY}{RESULT_REF}"] = f"{newest}\n".encode()
    for name, commit in copy.tags().items():
        if is_member_path(path := f"{REPOSITORY}refs/tags/{name}"):
            members[path] = f"{commit}\n".encode()
    for file in sorted((copy.path / "objects" / "pack").iterdir()):
        if file.suffix in (".pack", ".idx"):
            members[f"{REPOSITORY}objects/pack/{file.name}"] = file
    return members


def _describe(job: str, runs: list[run_history.RunHistory], newest: str, lost: list[str]) -> bytes:
    """Return what an archive says of itself."""
    about = {
        "job": job,
        "runs": [run.run_id for run in runs],
        "newest checkpoint": newest,
        "lost checkpoints": lost,
        "collected": datetime.now(UTC).isoformat(timespec="seconds"),
        "workflow code": unversioned_build_id(),
    }
    return json.dumps(about, indent=2).encode() + b"\n"

"""Verifies an archive offline: what it claims, what each claim rests on, what contradicts it."""

import gzip
import io
import json
import re
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseError
from temporalio.client import WorkflowHistory

from activities.checkpoints import Checkpoints, Root
from activities.job.snapshot import Snapshot
from activities.signatures.ssh_signature import InvalidSignatureFile, PublicKey, verify_signature
from cli.evidence import checkpoint_check, command_check, run_history
from cli.evidence.archive_file import SIGNED_AS, Archive, BrokenArchive, member_paths, read_archive
from cli.evidence.claims import Claim
from cli.evidence.collection import GIT_FILES, HISTORIES, JOB, REPOSITORY, RESULT_REF
from cli.evidence.decision_check import check_decisions
from cli.evidence.derived_documents import contract_rows, is_derived
from cli.evidence.gate_check import GateChecks
from cli.job_files.checkpoint_reader import MAX_LOG_ENTRIES
from engine.codec import data_converter
from engine.deployment import unversioned_build_id

MAX_HISTORY_BYTES = 1 << 30
_PACK = re.compile(rf"{re.escape(REPOSITORY)}objects/pack/pack-[0-9a-f]+\.(pack|idx)")
NOT_SHOWN = (
    "that a model wrote the replies, or a person the signals: no provider and no server signs them",
    "that times are right: they are the server's and the worker's",
    "that nobody made all of it up in one go, where it is not signed by a key that you trust",
)


@dataclass
class Verification:
    """What came of verifying an archive."""

    job: str = ""
    digest: str = ""
    claims: list[Claim] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    """What was asked for and what came of it, read again from the last checkpoint."""

    @property
    def holds(self) -> bool:
        return not any(claim.found for claim in self.claims)


async def verify_archive(
    path: Path, trusted: Sequence[PublicKey], *, run_commands: bool
) -> Verification:
    """Verify an archive without server, worker, model or network.

    Args:
        trusted: Keys of which one must have signed it; empty if any or none may have.
        run_commands: Whether to run verifiers and commands of todos again, in the sandbox.

    Raises:
        OSError: the file cannot be read, or the disk is full.
    """
    digests = Claim(
        "digests",
        "no bit of the file is other than it was written, and no record is missing or elsewhere",
        "SHA-256 in a chain of records, up to the head; whoever writes an archive computes them",
    )
    verification = Verification(claims=[digests])
    try:
        archive = read_archive(path)
    except BrokenArchive as broken:
        digests.found.append(str(broken))
        return verification
    digests.seen = f"{archive.records} records, {archive.size:,} bytes"
    verification.job, verification.digest = archive.job, archive.digest
    verification.claims.append(check_signature(archive, trusted))
    contents = Claim(
        "contents",
        "histories and checkpoints can be read",
        "their formats, as this version of Longhaul reads them",
    )
    with tempfile.TemporaryDirectory() as folder:
        try:
            opened = await _Contents.open(archive, Path(folder))
            verification.claims += await opened.check(run_commands=run_commands)
            verification.table = contract_rows(Snapshot.load(opened.store, opened.newest))
        except OSError:
            raise  # of this machine, not of the archive
        # Whatever else forged contents do to their readers is a finding.
        except Exception as error:
            contents.found.append(f"{type(error).__name__}: {error!s:.500}")
            verification.claims.append(contents)
    return verification


def check_signature(archive: Archive, trusted: Sequence[PublicKey]) -> Claim:
    claim = Claim(
        "signature",
        "the operator vouches for the head, and so for everything in the archive",
        "the ssh key that signed the head",
    )
    if archive.signature is None:
        lacks = "it is not signed"
        if trusted:
            claim.found.append(f"{lacks}, and --key names who should have signed it")
        else:
            claim.unchecked.append(f"{lacks}: whoever had it could have written all of it anew")
        return claim
    try:
        key = verify_signature(archive.signature, archive.head_bytes, SIGNED_AS)
    except InvalidSignatureFile as invalid:
        claim.found.append(str(invalid))
        return claim
    if key.fingerprint != archive.head["key"]:
        claim.found.append(f"it is by {key.fingerprint}, and the head names {archive.head['key']}")
    if trusted and key not in trusted:
        claim.found.append(f"it is by {key.fingerprint}, which is not among the keys of --key")
    if not trusted:
        claim.unchecked.append(f"whose key {key.fingerprint} is: --key PUB says whom you trust")
    claim.seen = f"ed25519 key {key.fingerprint}"
    return claim


@dataclass
class _Contents:
    """An archive's histories and checkpoints, opened in a folder of their own."""

    archive: Archive
    root: Root
    store: Checkpoints
    runs: list[run_history.RunHistory]
    refs: dict[str, str]
    lost: list[str]
    code: str
    """Identifies the workflow code of the version that wrote the archive."""

    @property
    def newest(self) -> str:
        """The checkpoint that the archive calls the newest. Raises KeyError."""
        return self.refs[RESULT_REF]

    @classmethod
    async def open(cls, archive: Archive, folder: Path) -> "_Contents":
        """Raises whatever forged contents lead to, such as ValueError; OSError of this machine."""
        if strange := [path for path in archive.members if not _is_expected(archive, path)]:
            raise ValueError(f"no archive has {', '.join(strange[:5])}, or not so")
        about = json.loads(archive.read(JOB))
        if about["job"] != archive.job:
            raise ValueError(f"{JOB} is of the job {about['job']!r}, the head of {archive.job!r}")
        root = Root.open(folder / "root", create=True)
        store = Checkpoints.create(root, archive.job)
        for path in member_paths(archive, f"{REPOSITORY}objects/pack/"):
            archive.extract(path, store.path / "objects" / "pack" / Path(path).name)
        store.store.reload()
        refs = {
            path.removeprefix(REPOSITORY): archive.read(path).decode().strip()
            for path in member_paths(archive, f"{REPOSITORY}refs/")
        }
        converter = data_converter()
        paths, ids = member_paths(archive, HISTORIES), about["runs"]
        expected = [f"{HISTORIES}{number:04d}-{each}.json.gz" for number, each in enumerate(ids, 1)]
        if not ids or list(paths) != expected:
            raise ValueError(f"the histories are not those of the runs in {JOB}")
        runs = [
            await run_history.read_run_history(
                run_id, _parse_history(archive.job, archive.read(path)), converter
            )
            for run_id, path in zip(ids, paths, strict=True)
        ]
        lost = [each for each in about["lost checkpoints"] if not store.has_commit(each)]
        return cls(archive, root, store, runs, refs, lost, str(about["workflow code"]))

    async def check(self, *, run_commands: bool) -> list[Claim]:
        """Return the claims on what is in the archive."""
        decisions = await check_decisions(self.runs, data_converter())
        if decisions.found and self.code != unversioned_build_id():
            decisions.unchecked.append(
                "whether the version that wrote the archive finds the same: its workflow code is "
                f"{self.code}, here it is {unversioned_build_id()}"
            )
        if (
            not run_history.encryption_reason(self.runs)
            and run_history.last_commit(self.runs) != self.newest
        ):
            decisions.found.append(
                f"the newest checkpoint is {run_history.last_commit(self.runs)}, not {self.newest}"
            )
        commits = [*run_history.named_commits(self.runs), *self.refs.values()]
        objects = checkpoint_check.check_objects(self.store, commits, self.lost)
        claims = [objects, decisions]
        if objects.found:
            return claims  # whatever is read from such checkpoints proves nothing
        chain = self.store.log(self.newest, MAX_LOG_ENTRIES)
        snapshot = Snapshot.load(self.store, self.newest)
        commands = command_check.CommandRuns.prepare(
            self.root, self.archive.job, snapshot.config, asked=run_commands
        )
        completed = self.runs[-1].end == run_history.COMPLETED
        documents = {
            path: self.archive.read(path) for path in self.archive.members if is_derived(path)
        }
        checkpoints = checkpoint_check.check_chain(self.store, chain, self.runs, self.lost)
        checkpoint_check.check_refs(checkpoints, self.store, self.refs, self.newest)
        claims += [
            checkpoints,
            GateChecks(self.store, self.archive.job, commands, self.lost).check_gates(self.runs),
            command_check.check_done_when(self.store, chain, commands),
            checkpoint_check.check_result(self.store, self.newest, self.runs),
            checkpoint_check.check_documents(self.store, chain, self.runs, documents),
            command_check.check_verifiers(snapshot, commands, completed=completed),
        ]
        return claims


def _is_expected(archive: Archive, path: str) -> bool:
    """Whether an archive has such a member; those that git reads must be as they were written."""
    if path in GIT_FILES:
        return archive.read(path) == GIT_FILES[path]
    return (
        path == JOB
        or is_derived(path)
        or path.startswith((HISTORIES, f"{REPOSITORY}refs/"))
        or bool(_PACK.fullmatch(path))
    )


def _parse_history(job: str, data: bytes) -> WorkflowHistory:
    """Raises ValueError."""
    try:
        text = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_HISTORY_BYTES + 1)
        if len(text) > MAX_HISTORY_BYTES:
            raise ValueError(f"a history has more than {MAX_HISTORY_BYTES:,} bytes")
        return WorkflowHistory.from_json(job, text.decode())
    except (OSError, EOFError, ParseError, RecursionError, zlib.error) as error:
        raise ValueError(f"a history cannot be read: {error}") from None

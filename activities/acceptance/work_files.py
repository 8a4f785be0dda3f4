"""The files of a job that are its work, and a digest of them."""

from __future__ import annotations

import hashlib

from activities.checkpoints import FileEntry
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.job.snapshot import Snapshot
from activities.toolkit.path_ownership import is_work_path


def work_files(snapshot: Snapshot) -> list[FileEntry]:
    """Return the files that are the job's work, without volatile ones, in order of their paths."""
    is_volatile = volatile_matcher(snapshot.config.shell.volatile)
    return [
        entry
        for entry in snapshot.files.walk()
        if entry.kind == "file" and is_work_path(entry.path) and not is_volatile(entry.path)
    ]


def work_fingerprint(snapshot: Snapshot) -> str:
    """Return a digest of the job's work and of the brief, which its verdicts hold for."""
    digest = hashlib.sha256(snapshot.read_text("instructions.md").encode())
    for entry in work_files(snapshot):
        digest.update(f"\0{entry.path}\0{entry.id}".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]

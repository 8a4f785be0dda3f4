"""Private folders in which commands and servers work, apart from the job's folder and checkpoints.

Each attempt has its own folder, updated to the tree it starts from; its changes are read back into
a new tree at the end. The folder is kept for the job's next attempt, so that only differing files
are written. It is discarded if the worker was killed or its content was not read back: a process
that outlived its attempt may still be writing there.
"""

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from activities.checkpoints import (
    CheckpointMissing,
    Files,
    FilesError,
    Root,
    folder_io,
    job_folder_name,
)
from activities.checkpoints.checkin import Checkin, CheckinLimits, CheckinState, read_checkin_state
from activities.checkpoints.checkout import EXCLUDED_NAMES, Checkout
from activities.checkpoints.checkpoint_errors import quote_path_in_error
from activities.checkpoints.locks import file_lock
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.removal import make_removable
from activities.redaction.credentials import hide_in_bytes

MAX_FOLDERS = 64
"""Number of attempts of one job that may have a folder at the same time."""
STALE_NANOSECONDS = 2_000_000_000
"""Time stamps of files changed more recently do not prove that a file is unchanged."""


MACHINE_ERRORS = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    )
)
"""Errors that no file of a command can cause."""


@dataclass
class PrivateFolder:
    """The folder of one attempt. `notes` has a line for each thing that `read_back` left out."""

    path: Path
    _base: Files
    _known: CheckinState
    _limits: CheckinLimits
    _tree: str | None = None
    """The tree that the folder holds, if known."""
    notes: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def read_back(self, *, hide_credentials: bool = False) -> Files:
        """Return the folder's files; links stay links, and nested repositories and empty folders
        are kept.

        Call it when nothing writes to the folder any more.

        Args:
            hide_credentials: Redact credentials in new and changed files, and list these files in
                `hidden`. Git's own folders are left alone: their files are compressed or have
                checksums.

        Raises FilesError, OSError.
        """
        clean = hide_in_bytes if hide_credentials else None
        checkin = Checkin(self._base, self._known, self._limits, clean=clean)
        _restore_private_folder_rights(self.path)
        with folder_io.open_folder(None, self.path) as fd:
            tree = checkin.import_folder(fd)
            reserved = sorted(EXCLUDED_NAMES.intersection(folder_io.list_folder_names(fd)))
        left_out = [
            f"Left out {name.decode()}/: the system keeps that folder." for name in reserved
        ]
        self.notes, self.hidden = [*checkin.notes, *left_out], checkin.cleaned
        files = Files(self._base.store, tree.hex(), limit=self._base.limit)
        # If something was left out or redacted, the next attempt must not find it in the folder.
        self._tree = None if self.notes or self.hidden else files.id
        return files


@contextmanager
def private_folder(
    files: Files, root: Root, job: str, limits: CheckinLimits | None = None
) -> Iterator[PrivateFolder]:
    """Provide a folder that holds `files`, exclusively for the duration of the context.

    Raises:
        OSError: It cannot be created (disk full, permissions).
        CheckpointMissing: The tree is not in the store.
        FilesError: What was done in the context cannot be done with a path in the folder, such as
            reading a file where commands made a folder.
    """
    pool = private_path(root, job)
    # Commands may set any mode, such as one that gives whoever runs a file the rights of its owner.
    pool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pool.mkdir(exist_ok=True)
    with ExitStack() as stack:
        place = _lock_free_private_folder(pool, stack)
        record = place / "holds.json"
        folder = place / "workspace"
        known_tree = _read_private_folder_tree(record)
        # Without this record the next attempt builds the folder anew, so remove it during work.
        record.unlink(missing_ok=True)
        try:
            _update_private_folder(files, place, folder, known_tree)
        except CheckpointMissing:
            if known_tree is None:
                raise
            _update_private_folder(files, place, folder, None)
        mark = place / "now"
        mark.write_bytes(b"")
        fresh = mark.stat().st_mtime_ns - STALE_NANOSECONDS
        with folder_io.open_folder(None, folder) as fd:
            known = read_checkin_state(files, fd, fresh)
        private = PrivateFolder(folder, files, known, limits or CheckinLimits())
        try:
            yield private
        except OSError as error:
            if problem := _path_problem(error, folder):
                raise FilesError(problem) from error
            raise
        if private._tree is not None:
            draft = place / "holds.new"
            draft.write_text(json.dumps({"tree": private._tree}))
            draft.rename(record)


def _path_problem(error: OSError, folder: Path) -> str:
    """Return which path of the folder is not what it was taken for; empty for another failure."""
    named = (
        error.filename if isinstance(error.filename, str) else os.fsdecode(error.filename or b"")
    )
    if error.errno in MACHINE_ERRORS or not named.startswith(f"{folder}/"):
        return ""
    path = quote_path_in_error(named.removeprefix(f"{folder}/"))
    return f"{path} cannot be used: {error.strerror}. Remove it, or name another path."


def private_path(root: Root, job: str) -> Path:
    return root.path / ".longhaul" / "private" / job_folder_name(job)


def remove_private_folders(root: Root, job: str) -> None:
    _remove_private_folder(private_path(root, job))


def _lock_free_private_folder(pool: Path, stack: ExitStack) -> Path:
    """Lock a free place of the pool; the lock ends with the process."""
    for number in range(MAX_FOLDERS):
        place = pool / str(number)
        place.mkdir(exist_ok=True)
        try:
            stack.enter_context(file_lock(place / "lock", seconds=0))
        except TimeoutError:
            continue
        return place
    raise OSError(
        f"All {MAX_FOLDERS} folders in {pool} are in use; end some of the calls that hold them."
    )


def _read_private_folder_tree(record: Path) -> str | None:
    try:
        return str(json.loads(record.read_text())["tree"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _update_private_folder(files: Files, place: Path, folder: Path, known_tree: str | None) -> None:
    trash, drafts = place / "gone", place / "drafts"
    _restore_private_folder_rights(folder)
    if known_tree is None and folder.exists():
        trash.mkdir(exist_ok=True)
        # Rename the folder instead of emptying it: a process that still writes to it then cannot
        # reach the new one.
        folder.rename(trash / secrets.token_hex(6))
    folder.mkdir(exist_ok=True)
    # A killed attempt may have left partly written files under these names.
    shutil.rmtree(drafts, ignore_errors=True)
    drafts.mkdir(exist_ok=True)
    known_trees = [bytes.fromhex(known_tree)] if known_tree else [EMPTY_TREE]
    with (
        folder_io.open_folder(None, folder) as fd,
        folder_io.open_folder(None, drafts) as drafts_fd,
    ):
        checkout = Checkout(files.store, drafts_fd, trash)
        checkout.update_folder(fd, (), known_trees, bytes.fromhex(files.id), scan=False)
    if checkout.moved_paths and known_tree is not None:
        # The folder held something that is in no tree of ours, so do not trust it.
        _update_private_folder(files, place, folder, None)
    _remove_private_folder(trash)


def _restore_private_folder_rights(folder: Path) -> None:
    """Restore the owner's rights, which a command may have removed as by `chmod 0 .`."""
    if folder.is_dir() and not folder.is_symlink():
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)


def _remove_private_folder(folder: Path) -> None:
    make_removable(folder)
    shutil.rmtree(folder, ignore_errors=True)

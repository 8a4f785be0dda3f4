"""Private folders: what a command or server works in, apart from the job's folder and checkpoints.

Each attempt has one for itself, brought to the tree it starts from; what was changed there is read
back into a new tree when it ends. A folder is kept for the next attempt of the job, so that one
of thousands of files is brought up to date by what differs. One whose end nobody saw — its worker
was killed, or its content was not read back — is thrown away: a process that outlived its attempt
may still be writing there.
"""

from __future__ import annotations

import json
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from activities.checkpoints import CheckpointMissing, Files, Root, folder_io, folder_name
from activities.checkpoints.checkin import Checkin, CheckinLimits, FolderState, read_folder_state
from activities.checkpoints.checkout import EXCLUDED_NAMES, Checkout
from activities.checkpoints.locks import file_lock
from activities.checkpoints.objects import EMPTY_TREE
from activities.checkpoints.removal import make_removable

MAX_FOLDERS = 64
"""Attempts of one job that may have a folder at a time."""
STALE_NANOSECONDS = 2_000_000_000
"""Of a file that changed less long ago, its times do not prove that it is unchanged."""


@dataclass
class PrivateFolder:
    """A folder of one attempt. `notes`: what `read_back` left out, a line each."""

    path: Path
    _base: Files
    _known: FolderState
    _limits: CheckinLimits
    _tree: str | None = None
    """What is known to be there; None once that is not known."""
    notes: list[str] = field(default_factory=list)

    def read_back(self) -> Files:
        """The files as they are there now: links as links, nested repositories, empty folders.

        Call it when nothing writes there any more.

        Raises:
            FilesError: more than a checkpoint can take; says how much.
            OSError: the folder cannot be read.
        """
        checkin = Checkin(self._base, self._known, self._limits)
        _restore_permissions(self.path)
        with folder_io.open_folder(None, self.path) as fd:
            tree = checkin.import_folder(fd)
            reserved = sorted(EXCLUDED_NAMES.intersection(folder_io.list_names(fd)))
        left_out = [
            f"Left out {name.decode()}/: the system keeps that folder." for name in reserved
        ]
        self.notes = [*checkin.notes, *left_out]
        files = Files(self._base.store, tree.hex(), limit=self._base.limit)
        # What no tree can hold would otherwise meet the next attempt.
        self._tree = None if self.notes else files.id
        return files


@contextmanager
def private_folder(
    files: Files, root: Root, job: str, limits: CheckinLimits | None = None
) -> Iterator[PrivateFolder]:
    """A folder that holds `files`, for as long as the body runs and for nobody else.

    Raises:
        OSError: it cannot be made (disk full, permissions).
        CheckpointMissing: the tree is not in the store.
    """
    pool = private_path(root, job)
    pool.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        place = _lock_free_place(pool, stack)
        record = place / "holds.json"
        folder = place / "workspace"
        known_tree = _read_known_tree(record)
        # Not known while somebody works there: who finds no record starts from nothing.
        record.unlink(missing_ok=True)
        try:
            _update_folder(files, place, folder, known_tree)
        except CheckpointMissing:
            if known_tree is None:
                raise
            _update_folder(files, place, folder, None)
        mark = place / "now"
        mark.write_bytes(b"")
        fresh = mark.stat().st_mtime_ns - STALE_NANOSECONDS
        with folder_io.open_folder(None, folder) as fd:
            known = read_folder_state(files, fd, fresh)
        private = PrivateFolder(folder, files, known, limits or CheckinLimits())
        yield private
        if private._tree is not None:
            draft = place / "holds.new"
            draft.write_text(json.dumps({"tree": private._tree}))
            draft.rename(record)


def private_path(root: Root, job: str) -> Path:
    """Where a job's folders are."""
    return root.path / ".longhaul" / "private" / folder_name(job)


def remove_private_folders(root: Root, job: str) -> None:
    """Throw a closed job's folders away."""
    _remove_folder(private_path(root, job))


def _lock_free_place(pool: Path, stack: ExitStack) -> Path:
    """A place of the pool that nobody holds; its lock dies with the process."""
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


def _read_known_tree(record: Path) -> str | None:
    try:
        return str(json.loads(record.read_text())["tree"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _update_folder(files: Files, place: Path, folder: Path, known_tree: str | None) -> None:
    gone, drafts = place / "gone", place / "drafts"
    _restore_permissions(folder)
    if known_tree is None and folder.exists():
        gone.mkdir(exist_ok=True)
        # Renamed, not emptied: whoever still writes there does not reach the new one.
        folder.rename(gone / secrets.token_hex(6))
    folder.mkdir(exist_ok=True)
    # Of an attempt that was killed amid a file: its names are to be free.
    shutil.rmtree(drafts, ignore_errors=True)
    drafts.mkdir(exist_ok=True)
    known_trees = [bytes.fromhex(known_tree)] if known_tree else [EMPTY_TREE]
    with (
        folder_io.open_folder(None, folder) as fd,
        folder_io.open_folder(None, drafts) as drafts_fd,
    ):
        checkout = Checkout(files.store, drafts_fd, gone)
        checkout.update_folder(fd, (), known_trees, bytes.fromhex(files.id), scan=False)
    if checkout.moved_paths and known_tree is not None:
        # Something was there that is in no tree of ours: not trusted any further.
        _update_folder(files, place, folder, None)
    _remove_folder(gone)


def _restore_permissions(folder: Path) -> None:
    """Give back the rights that a command took from all, as `chmod 0 .` does."""
    if folder.is_dir() and not folder.is_symlink():
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)


def _remove_folder(folder: Path) -> None:
    """Remove what commands left, whatever the modes they gave it."""
    make_removable(folder)
    shutil.rmtree(folder, ignore_errors=True)

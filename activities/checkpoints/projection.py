"""The workspace folder as a projection of the newest tree. It may lag and is never read back."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from activities.checkpoints import folder_io
from activities.checkpoints.checkout import Checkout
from activities.checkpoints.checkpoint_errors import CheckpointMissing
from activities.checkpoints.checkpoint_repository import Checkpoints
from activities.checkpoints.disk_access import write_whole
from activities.checkpoints.locks import file_lock
from activities.checkpoints.tree_files import Files
from activities.checkpoints.workspaces_root import Root

# How long to wait for another projection of the job; the next one repairs a skipped one.
WAIT_SECONDS = 20.0
MAX_STARTED = 16


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """What was last written to the folder.

    `order`: scheduled time in milliseconds of the activity that projected; `tree`: the last tree
    that was projected in full; `started`: trees begun and not finished since, newest last;
    `reported`: the number of the last folder in lost+found that was reported to people.
    """

    order: int = 0
    tree: str | None = None
    started: list[str] = field(default_factory=list)
    reported: int = 0


@contextmanager
def locked_projection(
    checkpoints: Checkpoints, wait: float = WAIT_SECONDS
) -> Iterator[ProjectionState | None]:
    """Hold the folder's lock; yield the record, or None if there is no readable one."""
    with file_lock(checkpoints.path / "longhaul-projection.lock", seconds=wait):
        yield _read_projection_state(checkpoints)


def update_projection(
    checkpoints: Checkpoints,
    root: Root,
    job: str,
    files: Files,
    order: int,
    *,
    full: bool = False,
    wait: float = WAIT_SECONDS,
) -> list[str]:
    """Update `<root>/<job>/` to `files`, by the difference from what was last projected.

    With `full`, after an interrupted projection, and without a record, every file is compared. The
    call does nothing if an activity scheduled later (`order`, milliseconds) has projected already,
    so a worker that was frozen cannot revert the folder.

    Returns the paths below `lost+found/`, relative to the root, to which strays and edited files
    were moved. With `full` it also returns the folders of earlier calls that did not report theirs.

    Raises OSError (disk full, permissions, TimeoutError for a locked folder), after which the next
    projection repairs the folder, and CheckpointMissing.
    """
    with locked_projection(checkpoints, wait) as last:
        if last is not None and order < last.order:
            return []
        record = last or ProjectionState(
            reported=max(_lost_batch_numbers(root.lost_found(job)), default=0)
        )
        scan = full or record.tree is None or bool(record.started)
        known = [tree for tree in dict.fromkeys([record.tree, *record.started]) if tree]
        # Marked before anything is changed, so that an interrupted pass is noticed.
        started = [*record.started, files.id][-MAX_STARTED:]
        _write_projection_state(checkpoints, replace(record, order=order, started=started))
        moved_paths: list[str] = []
        if scan or known != [files.id] or not root.workspace(job).is_dir():
            try:
                moved_paths = _run_projection_pass(checkpoints, root, job, known, files, scan=scan)
            except CheckpointMissing:
                # If an earlier tree is lost, nothing in the folder is known to be ours, and all
                # that differs is kept. If this tree itself is lost, this raises again.
                moved_paths = _run_projection_pass(checkpoints, root, job, [], files, scan=True)
        if not full:
            _complete_projection_state(
                checkpoints, ProjectionState(order, files.id, [], record.reported)
            )
            return moved_paths
        # Report the folders of passes in between, which reported nothing themselves.
        numbers = [
            number
            for number in _lost_batch_numbers(root.lost_found(job))
            if number > record.reported
        ]
        folders = [_lost_batch_folder(root, job, number) for number in numbers]
        moved_paths = [
            f for f in folders if not any(p.startswith(f"{f}/") for p in moved_paths)
        ] + moved_paths
        reported = max([record.reported, *numbers])
        _complete_projection_state(checkpoints, ProjectionState(order, files.id, [], reported))
        return moved_paths


def _run_projection_pass(
    checkpoints: Checkpoints, root: Root, job: str, known: list[str], files: Files, *, scan: bool
) -> list[str]:
    drafts = checkpoints.path / "projecting"
    if scan:  # left behind by an interrupted pass
        shutil.rmtree(drafts, ignore_errors=True)
    drafts.mkdir(exist_ok=True)
    workspace = root.workspace(job)
    try:
        workspace.mkdir()
        scan = True
    except FileExistsError:
        pass
    batch = _lost_batch_folder(
        root, job, max(_lost_batch_numbers(root.lost_found(job)), default=0) + 1
    )
    with (
        folder_io.open_folder(None, drafts) as drafts_fd,
        folder_io.open_folder(None, workspace) as workspace_fd,
    ):
        checkout = Checkout(checkpoints.store, drafts_fd, root.path / batch)
        trees = [bytes.fromhex(tree) for tree in known]
        checkout.update_folder(workspace_fd, (), trees, bytes.fromhex(files.id), scan=scan)
    return [f"{batch}/{path}" for path in checkout.moved_paths]


def _lost_batch_numbers(folder: Path) -> list[int]:
    """Return the numbers of the folders in a job's lost+found, sorted; each pass has its own."""
    try:
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lost_batch_folder(root: Root, job: str, number: int) -> str:
    return f"{root.lost_found(job).relative_to(root.path)}/{number:04}"


def _projection_record_path(checkpoints: Checkpoints) -> Path:
    return checkpoints.path / "projected.json"


def _read_projection_state(checkpoints: Checkpoints) -> ProjectionState | None:
    try:
        with _projection_record_path(checkpoints).open("rb", buffering=0) as file:
            lines = file.readall().splitlines()
    except OSError as error:
        # Without a record, files that we wrote would be taken for a person's.
        if error.errno in folder_io.NOT_OF_CONTENT:
            raise
        return None
    for line in reversed(lines):
        with suppress(ValueError, TypeError):
            return ProjectionState(**json.loads(line))
    return None


def _write_projection_state(checkpoints: Checkpoints, record: ProjectionState) -> None:
    """Replace the record by one line, whole or not at all."""
    path = _projection_record_path(checkpoints)
    draft = path.with_suffix(".new")  # one writer at a time: we hold the lock
    _write_state_line(draft, record, os.O_TRUNC)
    draft.rename(path)


def _complete_projection_state(checkpoints: Checkpoints, record: ProjectionState) -> None:
    """Append the state after a pass to the line written before it.

    A second replacement would take as long as the rest of a small pass. If the line is lost, the
    pass counts as interrupted.
    """
    _write_state_line(_projection_record_path(checkpoints), record, os.O_APPEND)


def _write_state_line(path: Path, record: ProjectionState, flag: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flag, 0o666)
    try:
        write_whole(handle, f"{json.dumps(asdict(record))}\n".encode())
    finally:
        os.close(handle)

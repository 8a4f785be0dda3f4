"""The folder people look at: brought up to date from checkpoints, read back only on `resume`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pygit2

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Root,
    open_checkpoints,
    project_files,
)
from activities.job.activity_context import job_id, scheduled_ms
from activities.job.push import BackgroundPush
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.text.plain import replace_surrogates

log = logging.getLogger("longhaul.folder")

PATIENCE_SECONDS = 20.0
"""Seconds to wait for another projection of the folder where it must be up to date."""
FOLLOW_SECONDS = 1.0
"""A folder lags at most so long behind its job while the model is asked."""
MAX_REMEMBERED = 10_000
_packing_paths: set[Path] = set()
"""Repositories that this process packs beside the steps of their jobs."""


def project_folder(
    root: Root,
    checkpoints: Checkpoints,
    commit: str,
    scheduled: int,
    *,
    full: bool = False,
    wait: float = PATIENCE_SECONDS,
) -> list[str]:
    """Bring the job's folder up to a checkpoint's files.

    Args:
        scheduled: Server-side order of the asking activity; an older one than the last is ignored.
        full: Compare everything, not only what changed since the last time.
        wait: Seconds to wait for another projection of the folder.

    Returns:
        Files of a person that were in the way, now in lost+found.

    Raises:
        OSError: the folder cannot be written, or is locked (TimeoutError).
    """
    files = Snapshot.load(checkpoints, commit).files
    moved = project_files(checkpoints, root, job_id(), files, scheduled, full=full, wait=wait)
    named = [replace_surrogates(path) for path in moved]
    for path in named:
        log.warning("moved to lost+found: %s", path, extra={"job": job_id()})
    return named


class FolderUpdater:
    """Brings folders up to date in passing, while something else is waited for.

    A folder is touched at most once in `FOLLOW_SECONDS`: it costs as much as all else of a step,
    and when steps follow one another that quickly nobody can look at each.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._last_started: dict[str, float] = {}
        """When each job's folder was last begun, by the event loop's clock."""
        self._packing: asyncio.Task[None] | None = None
        """Outlives the step in which it was begun, since it takes as long as dozens of them."""

    @asynccontextmanager
    async def update_meanwhile(self, commit: str) -> AsyncIterator[None]:
        """Bring this job's folder up to the commit while the body runs.

        A body that ends before that is due leaves the folder to the next one; a projection that
        was begun is waited for.
        """
        loop, job, scheduled = asyncio.get_running_loop(), job_id(), scheduled_ms()
        running: list[asyncio.Task[None]] = []

        async def update_folder() -> None:
            if await asyncio.to_thread(self._update_folder, commit, scheduled):
                self._pack_beside(job)

        def start_update() -> None:
            self._last_started[job] = loop.time()
            running.append(asyncio.create_task(update_folder()))

        if len(self._last_started) > MAX_REMEMBERED:
            self._last_started.clear()
        due = self._last_started.get(job, -FOLLOW_SECONDS) + FOLLOW_SECONDS
        timer = loop.call_at(due, start_update)
        try:
            yield
        finally:
            timer.cancel()
            for projection in running:
                await projection

    def _update_folder(self, commit: str, scheduled: int) -> bool:
        """Returns whether it is time for a pack."""
        checkpoints: Checkpoints | None = None
        # A folder that cannot be brought up to date now lags behind: a worker that is frozen while
        # it holds the folder must not cost others their step.
        try:
            with suppress(CheckpointMissing):
                checkpoints = open_checkpoints(self._root, job_id())
            if checkpoints is None or not checkpoints.has_commit(commit):
                return False  # another host made it; whoever opens it fetches it
            project_folder(self._root, checkpoints, commit, scheduled, wait=0)
        except (OSError, pygit2.GitError) as error:
            log.warning("the folder lags behind: %s", error, extra={"job": job_id()})
            return False
        return checkpoints.is_full

    def _pack_beside(self, job: str) -> None:
        """A phase may be long: what it stores is packed on the way as well.

        One job at a time: there are few threads, and the others' steps want them too.
        """
        if self._packing is None or self._packing.done():
            self._packing = asyncio.create_task(asyncio.to_thread(self._pack_job, job))

    def _pack_job(self, job: str) -> None:
        # Gone, it has nothing to pack.
        with suppress(CheckpointMissing):
            pack_if_full(open_checkpoints(self._root, job), job)


def pack_if_full(checkpoints: Checkpoints, job: str) -> None:
    """Pack what waits in the journal if it is time; what hinders it is logged."""
    _packing_paths.add(checkpoints.path)
    try:
        # Somebody else may be at it.
        with suppress(TimeoutError):
            if checkpoints.is_full:
                checkpoints.pack(wait=0)
    except (CheckpointMissing, OSError, pygit2.GitError) as error:
        log.warning("not packed: %s", error, extra={"job": job})
    finally:
        _packing_paths.discard(checkpoints.path)


def publish_checkpoint(
    root: Root, snapshot: Snapshot, tag: str, key: str, *, last: bool = False
) -> list[str]:
    """What a phase end does once its checkpoint is made; doing it twice changes nothing.

    Packs the objects, tags the checkpoint, pushes it to the remote if there is one, brings the
    whole folder up to date and drops the replies kept for retries that can no longer come. What a
    frozen worker holds, or a pack that is made beside the steps, is left to the next phase end;
    only at the `last` one the folder must be right, and nobody packs after it.
    """
    checkpoints = snapshot.checkpoints
    moved: list[str] = []
    wait = PATIENCE_SECONDS if last else 1
    ours = checkpoints.path in _packing_paths
    try:
        checkpoints.pack(wait=wait)
    except TimeoutError as error:
        level = logging.INFO if ours and not last else logging.WARNING
        log.log(level, "not packed: %s", error, extra={"job": job_id()})
    # Packed first: git, which knows nothing of the journal, can follow every tag.
    checkpoints.tag(tag, snapshot.commit)
    push = BackgroundPush(root, snapshot.config.workspace.remote or "", snapshot.commit)
    push.start(tag)
    try:
        moved = project_folder(
            root, checkpoints, snapshot.commit, scheduled_ms(), full=True, wait=wait
        )
    except TimeoutError as error:
        if last:
            raise
        log.warning("the folder lags behind: %s", error, extra={"job": job_id()})
    ResultCache(checkpoints.path).remove_others(except_key=key)
    push.wait_at_phase_end()
    return moved

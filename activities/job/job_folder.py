"""The folder people look at: updated from checkpoints, and read back only on `resume`."""

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
    update_projection,
)
from activities.job.checkpoint_push import BackgroundPush
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot, snapshot_workspace
from activities.runtime.activity_info import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_ms,
)
from activities.text.safe_text import replace_surrogates

log = logging.getLogger("longhaul.folder")

PATIENCE_SECONDS = 20.0
"""Seconds to wait for another projection where the folder must be up to date."""
FOLLOW_SECONDS = 1.0
"""Least seconds between two updates of a folder."""
PAUSE_SECONDS = 0.5
"""A model call that takes longer is a pause, in which its job's folder is updated."""
MAX_LAG_SECONDS = 2.0
"""Seconds after which a folder is updated although its job makes no pause."""
MAX_REMEMBERED = 10_000
_packing_paths: set[Path] = set()
"""Repositories that this process is packing in the background."""


def update_job_folder(
    root: Root,
    checkpoints: Checkpoints,
    commit: str,
    scheduled: int,
    *,
    full: bool = False,
    wait: float = PATIENCE_SECONDS,
) -> list[str]:
    """Update the job's folder to a checkpoint's files.

    Args:
        scheduled: Server-side order of the calling activity; one older than the last is ignored.
        full: Compare everything, not only what changed since the last update.
        wait: Seconds to wait for another projection of the folder.

    Returns:
        A person's files that were in the way and are now in lost+found.

    Raises OSError.
    """
    files = snapshot_workspace(checkpoints, commit)
    moved = update_projection(
        checkpoints, root, activity_job_id(), files, scheduled, full=full, wait=wait
    )
    named = [replace_surrogates(path) for path in moved]
    for path in named:
        log.warning("moved to lost+found: %s", path, extra={"job": activity_job_id()})
    return named


class JobFolderUpdater:
    """Updates folders in the background, while a step waits for something else.

    An update costs as much as the rest of a step, and nobody can follow steps that take half a
    second. So it waits for a model call that takes longer, but not for ever.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._last_started: dict[str, float] = {}
        """When each job's last update began, by the event loop's clock."""
        self._packing: asyncio.Task[None] | None = None
        """Outlives the step that started it, since packing takes as long as dozens of steps."""

    @asynccontextmanager
    async def update_meanwhile(self, commit: str) -> AsyncIterator[None]:
        """Update this job's folder to the commit while the body runs, if it runs long enough."""
        loop, job, scheduled = asyncio.get_running_loop(), activity_job_id(), activity_schedule_ms()
        now = loop.time()
        running: list[asyncio.Task[None]] = []

        async def update_folder() -> None:
            if await asyncio.to_thread(self._update_folder, commit, scheduled):
                self._pack_in_background(job)

        def start_update() -> None:
            self._last_started[job] = loop.time()
            running.append(asyncio.create_task(update_folder()))

        if len(self._last_started) > MAX_REMEMBERED:
            self._last_started.clear()
        last = self._last_started.setdefault(job, now - FOLLOW_SECONDS)
        due = min(max(last + FOLLOW_SECONDS, now + PAUSE_SECONDS), last + MAX_LAG_SECONDS)
        timer = loop.call_at(due, start_update)
        try:
            yield
        finally:
            timer.cancel()
            for projection in running:
                await projection

    def _update_folder(self, commit: str, scheduled: int) -> bool:
        """Update the folder; return whether the journal should be packed."""
        checkpoints: Checkpoints | None = None
        # If the folder cannot be updated now, it lags: a frozen worker that holds it must not cost
        # other workers their step.
        try:
            with suppress(CheckpointMissing):
                checkpoints = open_checkpoints(self._root, activity_job_id())
            if checkpoints is None or not checkpoints.has_commit(commit):
                return False  # another host made the commit; whoever opens it fetches it
            update_job_folder(self._root, checkpoints, commit, scheduled, wait=0)
        except (OSError, pygit2.GitError) as error:
            log.warning("the folder lags behind: %s", error, extra={"job": activity_job_id()})
            return False
        return checkpoints.is_full

    def _pack_in_background(self, job: str) -> None:
        """Pack a long phase's journal in the background, one job at a time."""
        if self._packing is None or self._packing.done():
            self._packing = asyncio.create_task(asyncio.to_thread(self._pack_job, job))

    def _pack_job(self, job: str) -> None:
        # The repository is gone, so there is nothing to pack.
        with suppress(CheckpointMissing):
            pack_full_job_journal(open_checkpoints(self._root, job), job)


def pack_full_job_journal(checkpoints: Checkpoints, job: str) -> None:
    _packing_paths.add(checkpoints.path)
    try:
        # Another packer may hold the lock.
        with suppress(TimeoutError):
            if checkpoints.is_full:
                checkpoints.pack(wait=0)
    except (CheckpointMissing, OSError, pygit2.GitError) as error:
        log.warning("not packed: %s", error, extra={"job": job})
    finally:
        _packing_paths.discard(checkpoints.path)


def publish_checkpoint(
    root: Root, snapshot: Snapshot, tag: str, *, last: bool = False
) -> list[str]:
    """Finish a phase's last checkpoint; repeating it changes nothing.

    Packs the objects, tags the checkpoint, pushes it to the remote if there is one, updates the
    whole folder and drops cached replies that no retry needs any more. If a frozen worker holds a
    lock, or a background pack runs, the next phase end does the rest. At the `last` phase end the
    folder must be right, and nobody packs later.
    """
    checkpoints = snapshot.checkpoints
    moved: list[str] = []
    wait = PATIENCE_SECONDS if last else 1
    ours = checkpoints.path in _packing_paths
    try:
        checkpoints.pack(wait=wait)
    except TimeoutError as error:
        level = logging.INFO if ours and not last else logging.WARNING
        log.log(level, "not packed: %s", error, extra={"job": activity_job_id()})
    # Pack first: git cannot read the journal, but can then follow every tag.
    checkpoints.tag(tag, snapshot.commit)
    push = BackgroundPush(root, snapshot.config.workspace.remote or "", snapshot.commit)
    push.start(tag)
    try:
        moved = update_job_folder(
            root, checkpoints, snapshot.commit, activity_schedule_ms(), full=True, wait=wait
        )
    except TimeoutError as error:
        if last:
            raise
        log.warning("the folder lags behind: %s", error, extra={"job": activity_job_id()})
    ResultCache(checkpoints.path).remove_others(except_key=activity_effect_key())
    push.wait_at_phase_end()
    return moved[:20]

"""Push checkpoints to the remote in the background, with one thread per job.

A checkpoint is pushed soon after it is made; of several only the newest. A model call pushes the
one it starts from at once and waits for it before it returns, so a lost host costs at most the step
in flight. An unreachable remote delays no step: it is tried again, and gets what it missed, if need
be from another process (`unpushed_checkpoint`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2
from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.checkpoints.checkpoint_errors import GitNotInstalled, RemoteUnavailable
from activities.checkpoints.push_staging import PushStaging
from activities.checkpoints.remote import push_to_remote
from activities.checkpoints.repository_owner import read_owner
from activities.job.unpushed_checkpoint import (
    UnpushedCheckpoint,
    list_unpushed,
    read_unpushed,
    record_unpushed,
    remove_unpushed,
)
from activities.redaction.secrets import redact
from protocol.short_text import one_line

log = logging.getLogger("longhaul.remote")

SOON_SECONDS = 0.15
"""Delay of a push that nobody waits for; often the next model call comes sooner."""
FIRST_DELAY, LONGEST_DELAY = 2.0, 60.0
"""Delays before a failed remote is tried again; each is twice the one before."""
JOIN_SECONDS = 10.0
"""How long a model call waits for its push."""
END_SECONDS = 20.0
"""How long a phase end waits."""
MAX_CONCURRENT_PUSHES = 4
"""Most concurrent pushes of a process."""
MAX_IDLE = 1000
_FAILURES = (RemoteUnavailable, GitNotInstalled, CheckpointMissing, OSError, pygit2.GitError)


@dataclass
class _PushWait:
    ticket: int
    attempt: int
    """The attempt whose failure ends the wait; 0 for any failed one."""
    future: Future[str]


class JobPusher:
    """The pushes of one job from this process. Tickets number the checkpoints in order."""

    def __init__(self, root: Root, job: str, url: str, slots: threading.Semaphore) -> None:
        self._root, self._job, self._url, self._slots = root, job, url, slots
        self._outgoing = PushStaging(root.repository(job))
        self._lock = threading.Condition()
        self._commit = self._run = ""
        self._tags: dict[str, str] = {}
        self._requested = self._pushed = 0
        self._attempts_started = self._attempts_ended = 0
        """Number of attempts started."""
        self._due = 0.0
        self._delay = FIRST_DELAY
        self._is_known = False
        """Whether it is known that the remote has the checkpoints from before this process."""
        self._thread: threading.Thread | None = None
        self._waits: list[_PushWait] = []
        self._recorded: UnpushedCheckpoint | None = None
        """What this process has recorded last as unpushed."""
        self._taken_over = ""
        """The commit that an earlier process could not push."""
        self.failure = ""
        """Why the remote lacks checkpoints."""

    @property
    def is_idle(self) -> bool:
        return self._thread is None

    def note_checkpoint(self, commit: str, run: str) -> None:
        """Note a new checkpoint, made in the workflow run with that id."""
        with self._lock:
            if self._pushed == self._requested:
                self._due = time.monotonic() + SOON_SECONDS
            self._record_commit(commit, run, {})
            self._start_thread()

    def push_now(
        self, commit: str, run: str, tags: dict[str, str] | None = None, *, hard: bool = False
    ) -> Future[str]:
        """Push a checkpoint now; return why it failed, or empty.

        Args:
            tags: New tags with their commits.
            hard: Try even if the remote has just failed.
        """
        with self._lock:
            self._record_commit(commit, run, tags or {})
            wait = _PushWait(self._requested, self._attempts_started + 1 if hard else 0, Future())
            self._waits.append(wait)
            if hard or not self.failure:
                self._due = 0.0
            self._finish_waits()
            self._start_thread()
            return wait.future

    def push_rest(self) -> Future[str]:
        """Push everything pending now."""
        with self._lock:
            commit, run = self._commit, self._run
        return self.push_now(commit, run, hard=True)

    def take_over(self, left: UnpushedCheckpoint) -> None:
        """Push what an earlier process could not, unless this one has a later checkpoint."""
        with self._lock:
            if not self._commit:
                self._recorded, self._taken_over = left, left.commit
                self._record_commit(left.commit, left.run, left.tags)
                self._start_thread()

    def record_rest(self) -> None:
        """Record what the process leaves unpushed when it ends."""
        with self._lock:
            if not self.is_idle:
                self._record_unpushed(self._commit, self._run, self._tags)

    def mark_late(self) -> None:
        """Note that a wait timed out; nobody else waits until a push succeeds."""
        with self._lock:
            self._set_failure(f"it takes more than {JOIN_SECONDS:.0f} s")
            self._finish_waits()

    def _record_commit(self, commit: str, run: str, tags: dict[str, str]) -> None:
        if commit != self._commit or run != self._run or tags:
            self._requested += 1
            self._commit, self._run = commit, run
            self._tags |= tags
            if self.failure:
                # Now, while no other process has made a later one, and not once an attempt fails.
                self._record_unpushed(commit, run, self._tags)

    def _start_thread(self) -> None:
        if self._pushed < self._requested and self._thread is None:
            self._thread = threading.Thread(target=self._push_until_done, daemon=True)
            self._thread.start()
        self._lock.notify_all()

    def _push_until_done(self) -> None:
        while True:
            with self._lock:
                while (seconds := self._due - time.monotonic()) > 0:
                    self._lock.wait(seconds)
                if self._pushed == self._requested:
                    self._thread = None
                    return
                ticket, commit, run = self._requested, self._commit, self._run
                tags, self._tags = self._tags, {}
                self._attempts_started += 1
                recorded = self._recorded
            failure = self._push_newest(commit, run, tags)
            with self._lock:
                self._attempts_ended += 1
                self._set_failure(failure)
                if failure:
                    if self._recorded is recorded:  # Otherwise a later checkpoint is in the file.
                        self._record_unpushed(commit, run, tags)
                    self._tags = tags | self._tags
                    self._due = time.monotonic() + self._delay
                    self._delay = min(2 * self._delay, LONGEST_DELAY)
                else:
                    self._pushed = ticket
                    self._delay = FIRST_DELAY
                    self._due = 0.0
                self._finish_waits()

    def _push_newest(self, commit: str, run: str, tags: dict[str, str]) -> str:
        """Push the checkpoint, or a later one that another process could not; return why it failed.

        This process records each checkpoint once. So whatever else is in the file is later than a
        recorded one, and if the file is gone, another process has pushed it or a later one.
        """
        repository = self._root.repository(self._job)
        left = read_unpushed(repository)
        if self._has_recorded(commit, tags):
            if left is None:
                return ""
            commit, run = left.commit, left.run
        failure = self._try_push(commit, run, {**(left.tags if left else {}), **tags})
        if not failure:
            remove_unpushed(repository, left)
        return failure

    def _has_recorded(self, commit: str, tags: dict[str, str]) -> bool:
        recorded = self._recorded
        return (
            recorded is not None
            and recorded.commit == commit
            and tags.items() <= recorded.tags.items()
        )

    def _record_unpushed(self, commit: str, run: str, tags: dict[str, str]) -> None:
        if not self._has_recorded(commit, tags):
            left = UnpushedCheckpoint(
                job=self._job, url=self._url, commit=commit, run=run, tags=tags
            )
            self._recorded = record_unpushed(self._root.repository(self._job), left)

    def _try_push(self, commit: str, run: str, tags: dict[str, str]) -> str:
        try:
            tag_refs = {f"tags/{name}": tagged for name, tagged in tags.items()}
            moved_refs = {f"runs/{run}/{self._root.id}": commit, **tag_refs}
            new_refs = {} if self._is_known else self._existing_refs(commit)
            if commit == self._taken_over:
                # If the root is from a backup, the remote has got later ones since.
                moved_refs, new_refs = {}, {**new_refs, **tag_refs, f"left/{run}/{commit}": commit}
            with self._slots:
                push_to_remote(
                    self._url,
                    self._job,
                    self._root.repository(self._job),
                    self._outgoing.stage(),
                    moved_refs,
                    new_refs,
                )
            self._is_known = True
            return ""
        except _FAILURES as error:
            return _push_failure_line(str(error))
        except Exception as error:
            # A bug of ours: the thread must survive it, or the job would never be pushed again.
            failure = _push_failure_line(f"{type(error).__name__}: {error}")
            log.error("a push failed: %s", failure, extra={"job": self._job}, exc_info=error)
            return failure

    def _existing_refs(self, commit: str) -> dict[str, str]:
        """Return refs for checkpoints that an earlier process may not have pushed."""
        checkpoints = open_checkpoints(self._root, self._job)
        refs = {f"tags/{name}": tagged for name, tagged in checkpoints.tags().items()}
        if mark := read_owner(checkpoints.path):
            refs[f"owner/{mark.chain}"] = commit
        return refs

    def _set_failure(self, failure: str) -> None:
        extra = {"job": self._job}
        if failure and not self.failure:
            log.warning(
                "checkpoints of %s wait for the remote: %s", self._job, failure, extra=extra
            )
        elif self.failure and not failure:
            log.info("the remote has all checkpoints of %s again", self._job, extra=extra)
        self.failure = failure

    def _finish_waits(self) -> None:
        """End the waits that are over."""
        for wait in list(self._waits):
            pushed = self._pushed >= wait.ticket
            if pushed or (self.failure and self._attempts_ended >= wait.attempt):
                self._waits.remove(wait)
                if wait.future.set_running_or_notify_cancel():
                    wait.future.set_result("" if pushed else self.failure)


def _push_failure_line(text: str) -> str:
    return one_line(redact(text), 300)


class PushRegistry:
    """All pushes of this process."""

    def __init__(self) -> None:
        self._jobs: dict[Path, JobPusher] = {}
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_CONCURRENT_PUSHES)

    def for_job(self, root: Root, job: str, url: str) -> JobPusher:
        """Return the pusher of one job."""
        with self._lock:
            if len(self._jobs) > MAX_IDLE:
                self._jobs = {key: each for key, each in self._jobs.items() if not each.is_idle}
            path = root.repository(job)
            if path not in self._jobs:
                self._jobs[path] = JobPusher(root, job, url, self._slots)
            return self._jobs[path]

    def flush(self, seconds: float) -> None:
        """Push the rest before the process ends, for at most this long."""
        until = time.monotonic() + seconds
        with self._lock:
            waits = [each.push_rest() for each in self._jobs.values() if not each.is_idle]
        for wait in waits:
            with suppress(TimeoutError):
                wait.result(max(0.0, until - time.monotonic()))
        with self._lock:
            for each in self._jobs.values():
                each.record_rest()

    def push_leftovers(self, root: Root) -> None:
        """Begin to push what earlier processes of this root could not.

        In a thread: a root may have very many jobs, and a start must not wait for its disk.
        """
        threading.Thread(target=self._take_over_all, args=(root,), daemon=True).start()

    def _take_over_all(self, root: Root) -> None:
        for left in list_unpushed(root):
            self.for_job(root, left.job, left.url).take_over(left)


PUSHES = PushRegistry()


def _current_pusher(root: Root, url: str) -> tuple[JobPusher, str]:
    """Return the running job's pusher and its workflow run."""
    info = activity.info()
    return PUSHES.for_job(root, info.workflow_id or "", url), info.workflow_run_id or ""


def push_soon(root: Root, url: str, commit: str) -> None:
    """Schedule a push of the running job's checkpoint."""
    pushing, run = _current_pusher(root, url)
    pushing.note_checkpoint(commit, run)


class BackgroundPush:
    """A push in the background; without a url it does nothing."""

    def __init__(self, root: Root, url: str, commit: str) -> None:
        self._commit = commit
        self._pusher_and_run = _current_pusher(root, url) if url else None
        self._future: Future[str] | None = None

    def start(self, tag: str = "") -> None:
        """Begin, unless already begun.

        With a tag that was set on the checkpoint, push even if the remote has just failed.
        """
        if self._pusher_and_run and self._future is None:
            pushing, run = self._pusher_and_run
            tags = {tag: self._commit} if tag else {}
            self._future = pushing.push_now(self._commit, run, tags, hard=bool(tag))

    async def wait_for_push(self) -> str:
        """Wait until the remote has the checkpoint; return why not, if the wait is given up."""
        self.start()
        if self._pusher_and_run is None or self._future is None:
            return ""
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._future), JOIN_SECONDS)
        except TimeoutError:
            pushing, _ = self._pusher_and_run
            pushing.mark_late()
            return pushing.failure

    def wait_at_phase_end(self) -> None:
        """Wait longer, at a phase end and in a thread; a failure is only logged."""
        if self._future is not None:
            with suppress(TimeoutError):
                self._future.result(END_SECONDS)

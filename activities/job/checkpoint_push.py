"""Push checkpoints to the remote in the background, with one thread per job.

A checkpoint is pushed soon after it is made; of several only the newest. A model call pushes the
one it starts from at once and waits for it before it returns, so a lost host costs at most the step
in flight. An unreachable remote delays no step: it is tried again, and gets what it missed, if need
be from another process (`UnpushedCheckpoint`).
"""

import asyncio
import logging
import secrets
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2
from pydantic import Field
from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.checkpoints.checkpoint_errors import GitNotInstalled, RemoteUnavailable
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.remote import push_to_remote
from activities.checkpoints.repository_owner import read_owner
from activities.checkpoints.workspaces_root import list_job_repositories
from activities.redaction.secrets import redact
from protocol.data_model import Data
from protocol.short_text import one_line

FILE = "unpushed.json"


class UnpushedCheckpoint(Data):
    """The newest checkpoint that the remote lacks, in a file of the job's repository.

    All processes of a workspaces root share it. So none that tries again later moves the remote
    back to an older checkpoint, and a process that starts pushes what an earlier one could not: the
    job may have ended meanwhile, or wait for a person, and has no step that would push it.
    """

    job: str
    url: str
    commit: str
    run: str
    """Id of the workflow run that made it."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags that the remote lacks, with their commits."""


def record_unpushed(repository: Path, checkpoint: UnpushedCheckpoint) -> UnpushedCheckpoint | None:
    """Write the file with the tags that it had; return what it has, None if that fails."""
    if before := read_unpushed(repository):
        tags = before.tags | checkpoint.tags
        checkpoint = checkpoint.model_copy(update={"tags": tags})
    draft = repository / f"{FILE}.{secrets.token_hex(6)}"
    try:
        draft.write_text(checkpoint.model_dump_json())
        draft.replace(repository / FILE)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return None
    return checkpoint


def read_unpushed(repository: Path) -> UnpushedCheckpoint | None:
    """Return the checkpoint; None if the remote has all, or the file is damaged."""
    try:
        return UnpushedCheckpoint.model_validate_json((repository / FILE).read_bytes())
    except (OSError, ValueError):
        return None


def remove_unpushed(repository: Path, pushed: UnpushedCheckpoint | None) -> None:
    """Remove the file, unless another process has recorded a later checkpoint meanwhile."""
    if read_unpushed(repository) == pushed:
        with suppress(OSError):
            (repository / FILE).unlink(missing_ok=True)


def list_unpushed(root: Root) -> list[UnpushedCheckpoint]:
    unpushed = map(read_unpushed, list_job_repositories(root))
    return [each for each in unpushed if each is not None]


log = logging.getLogger("longhaul.remote")

SOON_SECONDS = 0.15
"""Delay of a push that nobody waits for; often the next model call comes sooner."""
FIRST_DELAY, LONGEST_DELAY = 2.0, 60.0
"""Delays before a failed remote is tried again; each is twice the one before."""
JOIN_SECONDS = 10.0
END_SECONDS = 20.0
MAX_CONCURRENT_PUSHES = 4
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
        self._due = 0.0
        self._delay = FIRST_DELAY
        self._is_known = False
        """Whether it is known that the remote has the checkpoints from before this process."""
        self._thread: threading.Thread | None = None
        self._waits: list[_PushWait] = []
        self._recorded: UnpushedCheckpoint | None = None
        self._taken_over = ""
        """The commit that an earlier process could not push."""
        self.failure = ""
        """Why the remote lacks checkpoints."""

    @property
    def is_idle(self) -> bool:
        return self._thread is None

    def note_checkpoint(self, commit: str, run: str) -> None:
        with self._lock:
            if self._pushed == self._requested:
                self._due = time.monotonic() + SOON_SECONDS
            self._record_commit(commit, run, {})
            self._start_thread()

    def push_now(
        self, commit: str, run: str, tags: dict[str, str] | None = None, *, hard: bool = False
    ) -> Future[str]:
        """Push a checkpoint now; return why it failed, or empty."""
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
        with self._lock:
            commit, run = self._commit, self._run
        return self.push_now(commit, run, hard=True)

    def take_over(self, unpushed: UnpushedCheckpoint) -> None:
        with self._lock:
            if not self._commit:
                self._recorded, self._taken_over = unpushed, unpushed.commit
                self._record_commit(unpushed.commit, unpushed.run, unpushed.tags)
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
        unpushed = read_unpushed(repository)
        if self._has_recorded(commit, tags):
            if unpushed is None:
                return ""
            commit, run = unpushed.commit, unpushed.run
        failure = self._try_push(commit, run, {**(unpushed.tags if unpushed else {}), **tags})
        if not failure:
            remove_unpushed(repository, unpushed)
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
            unpushed = UnpushedCheckpoint(
                job=self._job, url=self._url, commit=commit, run=run, tags=tags
            )
            self._recorded = record_unpushed(self._root.repository(self._job), unpushed)

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
        for wait in list(self._waits):
            pushed = self._pushed >= wait.ticket
            if pushed or (self.failure and self._attempts_ended >= wait.attempt):
                self._waits.remove(wait)
                if wait.future.set_running_or_notify_cancel():
                    wait.future.set_result("" if pushed else self.failure)


def _push_failure_line(text: str) -> str:
    return one_line(redact(text), 300)


class PushRegistry:
    def __init__(self) -> None:
        self._jobs: dict[Path, JobPusher] = {}
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_CONCURRENT_PUSHES)

    def for_job(self, root: Root, job: str, url: str) -> JobPusher:
        with self._lock:
            if len(self._jobs) > MAX_IDLE:
                self._jobs = {key: each for key, each in self._jobs.items() if not each.is_idle}
            path = root.repository(job)
            if path not in self._jobs:
                self._jobs[path] = JobPusher(root, job, url, self._slots)
            return self._jobs[path]

    def flush(self, seconds: float) -> None:
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
        """Begin to push what earlier processes of this root could not, in a thread."""
        threading.Thread(target=self._take_over_all, args=(root,), daemon=True).start()

    def _take_over_all(self, root: Root) -> None:
        for unpushed in list_unpushed(root):
            self.for_job(root, unpushed.job, unpushed.url).take_over(unpushed)


PUSHES = PushRegistry()


def _current_pusher(root: Root, url: str) -> tuple[JobPusher, str]:
    info = activity.info()
    return PUSHES.for_job(root, info.workflow_id or "", url), info.workflow_run_id or ""


def push_soon(root: Root, url: str, commit: str) -> None:
    pushing, run = _current_pusher(root, url)
    pushing.note_checkpoint(commit, run)


class BackgroundPush:
    """A push in the background; without a url it does nothing."""

    def __init__(self, root: Root, url: str, commit: str) -> None:
        self._commit = commit
        self._pusher_and_run = _current_pusher(root, url) if url else None
        self._future: Future[str] | None = None

    def start(self, tag: str = "") -> None:
        """Begin, unless already begun; a new tag is pushed even if the remote has just failed."""
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

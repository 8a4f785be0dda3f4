"""The folder follows its job while the model is asked, and a full journal is packed beside it."""

import asyncio
import dataclasses
import errno
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Root, open_checkpoints
from activities.checkpoints.journal import FULL_BYTES
from activities.checkpoints.locks import file_lock
from activities.job.job_folder import (
    MAX_LAG_SECONDS,
    PAUSE_SECONDS,
    JobFolderUpdater,
    pack_full_job_journal,
    publish_checkpoint,
)
from tests.activities.checkpoints.test_projection import in_tree, on_disk
from tests.activities.standing import JOB, Standing, environment
from tests.soak import soak

PATIENCE = 60


async def test_no_step_waits_for_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Standing.begin(tmp_path)
    job.write("large.md", b"x" * FULL_BYTES)
    repository = open_checkpoints(job.root, JOB)
    begun, go_on, packed = threading.Event(), threading.Event(), threading.Event()
    packs = 0
    pack = Checkpoints.pack

    def slowly(self: Checkpoints, *, wait: float) -> None:
        nonlocal packs
        packs += 1
        begun.set()
        assert go_on.wait(PATIENCE)
        pack(self, wait=wait)
        packed.set()

    monkeypatch.setattr(Checkpoints, "pack", slowly)
    follower = JobFolderUpdater(job.root)

    async def step() -> None:
        async with follower.update_meanwhile(job.commit):
            assert await asyncio.to_thread(begun.wait, PATIENCE)

    await environment(local=False).run(step)
    assert (job.root.workspace(JOB) / "large.md").stat().st_size == FULL_BYTES
    # Packing is still running and is not begun twice.
    await environment(local=False, activity_id="8").run(step)
    assert (packs, repository.is_full) == (1, True)
    go_on.set()
    assert await asyncio.to_thread(packed.wait, PATIENCE)
    assert not repository.is_full
    assert list((repository.path / "journal").iterdir()) == []


async def test_a_folder_is_updated_in_a_pause_and_at_last_without_one(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    follower = JobFolderUpdater(job.root)
    folder = job.root.workspace(JOB)

    async def step(seconds: float) -> None:
        async with follower.update_meanwhile(job.commit):
            await asyncio.sleep(seconds)

    job.write("a.md", "x")
    for _ in range(20):
        await environment(local=False).run(step, 0)
    assert not folder.exists()
    await environment(local=False).run(step, PAUSE_SECONDS + 0.1)
    assert (folder / "a.md").read_text() == "x"
    job.write("b.md", "y")
    quick_steps = 0
    async with asyncio.timeout(PATIENCE):
        while not (folder / "b.md").exists():
            quick_steps += 1
            await environment(local=False).run(step, 0.05)
    assert quick_steps > MAX_LAG_SECONDS


async def test_a_journal_that_cannot_be_packed_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = Standing.begin(tmp_path)
    job.write("large.md", b"x" * FULL_BYTES)
    tried = threading.Event()

    def full(self: Checkpoints, *, wait: float) -> None:
        tried.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Checkpoints, "pack", full)

    async def step() -> None:
        async with JobFolderUpdater(job.root).update_meanwhile(job.commit):
            await asyncio.to_thread(tried.wait, PATIENCE)
            async with asyncio.timeout(PATIENCE):
                while "not packed" not in caplog.text:  # noqa: ASYNC110 - it offers nothing else
                    await asyncio.sleep(0.02)

    await environment(local=False).run(step)
    assert "not packed: [Errno 28] No space left on device" in caplog.text


@contextmanager
def packing(repository: Path, seconds: float | None) -> Iterator[None]:
    """Another process is packing, for so long; None: until the end of the block."""
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        with file_lock(repository / "longhaul-pack.lock", seconds=1):
            begun.set()
            done.wait(seconds)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(PATIENCE)
    yield
    done.set()
    holder.join()


async def test_the_end_of_a_job_waits_for_a_pack_and_that_of_a_phase_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = Standing.begin(tmp_path)
    job.write("a.md", "x")
    journal = job.root.repository(JOB) / "journal"

    def end(*, last: bool) -> None:
        publish_checkpoint(job.root, job.open(), "end", last=last)

    for last in (False, True):
        with packing(journal.parent, 3 if last else None):
            await environment(local=False).run(asyncio.to_thread, lambda last=last: end(last=last))
        assert bool(list(journal.iterdir())) is not last
    assert caplog.text.count("not packed") == 1


async def test_a_pack_of_its_own_that_the_end_of_a_phase_meets_is_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = Standing.begin(tmp_path)
    job.write("large.md", b"x" * FULL_BYTES)
    repository = open_checkpoints(job.root, JOB)
    begun, go_on = threading.Event(), threading.Event()
    pack = Checkpoints.pack

    def slowly(self: Checkpoints, *, wait: float) -> None:
        if wait:
            pack(self, wait=wait)
        else:
            with file_lock(repository.path / "longhaul-pack.lock", seconds=1):
                begun.set()
                assert go_on.wait(PATIENCE)

    monkeypatch.setattr(Checkpoints, "pack", slowly)
    beside = threading.Thread(target=pack_full_job_journal, args=(repository, JOB))
    beside.start()
    assert begun.wait(PATIENCE)
    with caplog.at_level("INFO", "longhaul.folder"):
        await environment(local=False).run(
            asyncio.to_thread, lambda: publish_checkpoint(job.root, job.open(), "end")
        )
    go_on.set()
    beside.join()
    [log_record] = [one for one in caplog.records if "not packed" in one.message]
    assert log_record.levelname == "INFO"


HANDLES = {"open", "os.listdir", "os.scandir"}
CHANGES = {f"os.{name}" for name in ("link", "mkdir", "remove", "rename", "rmdir", "symlink")}
"""Events that Python announces before it acts."""
NOT_REACHED = 3


def end_of_phase(job: Standing) -> None:
    def end() -> None:
        publish_checkpoint(job.root, job.open(), "phase")

    environment(local=False).run(end)


def troubled(job: Standing, at: int, *, kill: bool) -> bool:
    """End a phase in a child process that is killed at its file operation of that number, or that
    gets no handle there and retries. Return whether there is such an operation.
    """
    counted = HANDLES | CHANGES if kill else HANDLES
    child = os.fork()
    if child == 0:
        left = at

        def count(event: str, _: object) -> None:
            nonlocal left
            left -= event in counted
            if left == 0 and event in counted:
                if kill:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(errno.EMFILE, "Too many open files")

        code = 1
        sys.addaudithook(count)
        with suppress(BaseException):
            with suppress(OSError):
                end_of_phase(job)
            if left > 0:
                code = NOT_REACHED
            else:
                end_of_phase(job)
                code = 0
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (-signal.SIGKILL if kill else 0, NOT_REACHED), at
    return code != NOT_REACHED


@pytest.mark.parametrize("kill", [True, False])
def test_a_phase_end_that_breaks_off_anywhere_is_made_good_by_the_next_attempt(
    tmp_path: Path, kill: bool
) -> None:
    job = Standing.begin(tmp_path)
    for name in ("notes/a.md", "notes/b.md", "gone/c.md"):
        job.write(name, name)
    end_of_phase(job)
    job.put(lambda files: files.delete("gone").write("notes/a.md", b"new").write("d/e.md", b"e"))
    reached, operation = True, 0
    while reached:
        operation += soak(12 if kill else 5, 1)
        copy = dataclasses.replace(job, root=Root.open(tmp_path / f"{operation}", create=True))
        shutil.copytree(job.root.path, copy.root.path, dirs_exist_ok=True)
        reached = troubled(copy, operation, kill=kill)
        end_of_phase(copy)
        checkpoints = open_checkpoints(copy.root, JOB)
        assert checkpoints.tags() == {"phase": job.commit}
        assert checkpoints.is_intact(job.commit)
        assert on_disk(copy.root.workspace(JOB)) == in_tree(copy.open().files)
        assert not (copy.root.path / "lost+found").exists()
        assert not (checkpoints.path / "packing").exists()
        assert list((checkpoints.path / "journal").iterdir()) == []
    assert operation > 40

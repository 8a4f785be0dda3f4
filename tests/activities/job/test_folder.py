"""The folder follows its job while the model is asked, and a full journal is packed beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, open_checkpoints
from activities.checkpoints.journal import FULL_BYTES
from activities.checkpoints.locks import locked
from activities.job.folder import Follower, pack_if_full, settle
from tests.activities.standing import JOB, Standing, environment

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
    follower = Follower(job.root)

    async def step() -> None:
        async with follower.following(job.commit):
            # As long as a quick model call: the folder is due at once, and in a second again.
            await asyncio.sleep(1.1)
            assert await asyncio.to_thread(begun.wait, PATIENCE)

    await environment(local=False).run(step)
    assert (job.root.workspace(JOB) / "large.md").stat().st_size == FULL_BYTES
    # Still at it: it is not begun twice.
    await environment(local=False, activity_id="8").run(step)
    assert (packs, repository.is_full) == (1, True)
    go_on.set()
    assert await asyncio.to_thread(packed.wait, PATIENCE)
    assert not repository.is_full
    assert list((repository.path / "journal").iterdir()) == []


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
        async with Follower(job.root).following(job.commit):
            await asyncio.to_thread(tried.wait, PATIENCE)
            async with asyncio.timeout(PATIENCE):
                while "not packed" not in caplog.text:  # noqa: ASYNC110 - it offers nothing else
                    await asyncio.sleep(0.02)

    await environment(local=False).run(step)
    assert "not packed: [Errno 28] No space left on device" in caplog.text


@contextmanager
def packing(repository: Path, seconds: float | None) -> Iterator[None]:
    """Somebody else is at it, for so long; None: until the end of the block."""
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(repository / "longhaul-pack.lock", seconds=1):
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
        settle(job.root, job.open(), "end", "key", last=last)

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
            with locked(repository.path / "longhaul-pack.lock", seconds=1):
                begun.set()
                assert go_on.wait(PATIENCE)

    monkeypatch.setattr(Checkpoints, "pack", slowly)
    beside = threading.Thread(target=pack_if_full, args=(repository, JOB))
    beside.start()
    assert begun.wait(PATIENCE)
    with caplog.at_level("INFO", "longhaul.folder"):
        await environment(local=False).run(
            asyncio.to_thread, lambda: settle(job.root, job.open(), "end", "key")
        )
    go_on.set()
    beside.join()
    [told] = [one for one in caplog.records if "not packed" in one.message]
    assert told.levelname == "INFO"

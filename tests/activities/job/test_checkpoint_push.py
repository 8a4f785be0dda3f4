"""Pushes beside the steps: the newest checkpoint, at once or soon, and again while that fails."""

import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.object_store import EMPTY_TREE
from activities.job.checkpoint_push import (
    JobPusher,
    PushRegistry,
    UnpushedCheckpoint,
    list_unpushed,
    record_unpushed,
)
from tests.activities.checkpoints.hosts import remote_ref_prefix
from tests.activities.wires import HELPER, PASSWORD, Trouble, authorization, given, web

SECONDS = 30


@pytest.fixture
def pushes() -> PushRegistry:
    return PushRegistry()


@pytest.fixture
def address(remote: Path) -> str:
    """Return the address of the repository that these tests look into and damage."""
    return f"file://{remote}"


@pytest.fixture
def pushing(pushes: PushRegistry, root: Root, address: str) -> JobPusher:
    return pushes.for_job(root, "job", address)


def made(root: Root, text: str, parent: str | None = None) -> str:
    store = open_checkpoints(root, "job", create=True)
    files = store.files(EMPTY_TREE.hex()).write("a.md", text.encode())
    return store.commit(files.id, [parent] if parent else [], text, 1_700_000_000)


def newest(remote: Path, root: Root, run: str = "run") -> str:
    return pushed(remote, f"runs/{run}/{root.id}")


def pushed(remote: Path, ref: str) -> str:
    name = f"{remote_ref_prefix('job')}{ref}"
    process = subprocess.run(
        ["git", "--git-dir", str(remote), "rev-parse", "--quiet", "--verify", name],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    return process.stdout.strip()


def test_who_asks_is_answered_when_the_remote_has_it(
    pushing: JobPusher, root: Root, remote: Path
) -> None:
    commit = made(root, "one")
    assert pushing.push_now(commit, "run", {"phase/0001": commit}).result(SECONDS) == ""
    assert newest(remote, root) == commit
    # Nothing is pushed twice.
    shutil.rmtree(remote)
    assert pushing.push_now(commit, "run").result(SECONDS) == ""


def test_what_is_left_is_pushed_before_the_process_ends(
    pushes: PushRegistry, pushing: JobPusher, root: Root, remote: Path
) -> None:
    first = made(root, "one")
    pushing.note_checkpoint(first, "run")
    second = made(root, "two", first)
    pushing.note_checkpoint(second, "run")
    pushes.flush(SECONDS)
    assert newest(remote, root) == second


def test_a_remote_that_failed_is_waited_for_by_nobody_and_tried_again(
    pushing: JobPusher, root: Root, remote: Path
) -> None:
    away = shutil.move(remote, remote.with_name("away"))
    commit = made(root, "one")
    assert "git repository" in pushing.push_now(commit, "run").result(SECONDS)
    later = made(root, "two", commit)
    # Answered at once.
    assert "git repository" in pushing.push_now(later, "run").result(0)
    shutil.move(away, remote)
    # A phase end tries at once.
    assert pushing.push_now(later, "run", {"phase/0002": later}, hard=True).result(SECONDS) == ""
    assert newest(remote, root) == later
    assert pushing.failure == ""


def test_it_is_tried_again_when_nobody_asks(pushing: JobPusher, root: Root, remote: Path) -> None:
    away = shutil.move(remote, remote.with_name("away"))
    commit = made(root, "one")
    assert pushing.push_now(commit, "run").result(SECONDS)
    shutil.move(away, remote)
    until = time.monotonic() + SECONDS
    while newest(remote, root) != commit:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_whoever_waited_too_long_spares_the_next(pushing: JobPusher, root: Root) -> None:
    commit = made(root, "one")
    pushing.mark_late()
    assert "takes more than" in pushing.push_now(commit, "run").result(SECONDS)


def test_a_failure_that_nobody_foresaw_ends_no_pushing(
    pushing: JobPusher, root: Root, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("embedded null byte" + " of many" * 100)

    commit = made(root, "one")
    with monkeypatch.context() as for_now:
        for_now.setattr("activities.job.checkpoint_push.push_to_remote", broken)
        outcome = pushing.push_now(commit, "run").result(SECONDS)
        assert "null byte" in outcome
        assert outcome.endswith("…")
        assert "null byte" in pushing.push_now(commit, "run", hard=True).result(SECONDS)
    assert pushing.push_now(commit, "run", hard=True).result(SECONDS) == ""
    assert newest(remote, root) == commit


@pytest.mark.parametrize(
    ("trouble", "why"),
    [("500", "HTTP 500"), ("cut", "hung up"), ("unanswered", "hung up"), ("slow", "")],
)
def test_what_a_server_spoils_is_pushed_again(
    pushes: PushRegistry, root: Root, remote: Path, monkeypatch: pytest.MonkeyPatch,
    trouble: Trouble, why: str,
) -> None:  # fmt: skip
    given(monkeypatch, http__extraHeader=f"Authorization: {authorization()}")
    # Enough data for git to send it in chunks.
    text = random.Random(1).randbytes(1_500_000).hex() if trouble == "cut" else "one"
    commit = made(root, text)
    with web(remote.parent) as served:
        served.trouble = trouble
        pushing = pushes.for_job(root, "job", f"{served.url}/{remote.name}")
        waits = pushing.push_now(commit, "run", {"phase/0001": commit})
        # The caller goes on meanwhile.
        assert trouble != "slow" or not waits.done()
        served.goes_on.set()
        assert why in waits.result(SECONDS)
        assert newest(remote, root) == (commit if trouble in ("unanswered", "slow") else "")
        served.trouble = ""
        later = made(root, "two", commit)
        assert pushing.push_now(later, "run", hard=True).result(SECONDS) == ""
    assert newest(remote, root) == later
    assert pushing.failure == ""
    git = ["git", "--git-dir", str(remote)]
    tagged = f"{remote_ref_prefix('job')}tags/phase/0001"
    assert subprocess.check_output([*git, "rev-parse", tagged], text=True).strip() == commit
    subprocess.run([*git, "fsck", "--strict", "--no-dangling"], check=True)


def test_a_wrong_password_is_told_and_the_right_one_is_taken_when_it_is_there(
    pushes: PushRegistry, root: Root, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = made(root, "one")
    with web(remote.parent) as served:
        pushing = pushes.for_job(root, "job", f"{served.url}/{remote.name}")
        given(monkeypatch, credential__helper=HELPER)
        monkeypatch.setenv("TEST_REMOTE_SECRET", "wr0ng-4711")
        assert "Authentication failed" in pushing.push_now(commit, "run").result(SECONDS)
        monkeypatch.setenv("TEST_REMOTE_SECRET", PASSWORD)
        assert pushing.push_rest().result(SECONDS) == ""
    assert newest(remote, root) == commit


def push_leftovers(root: Root) -> None:
    PushRegistry().push_leftovers(root)
    until = time.monotonic() + SECONDS
    while list_unpushed(root):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_what_a_process_could_not_push_is_pushed_by_the_next(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> None:
    away = shutil.move(remote, remote.with_name("away"))
    commit = made(root, "one")
    assert pushing.push_now(commit, "run", {"phase/0001": commit}).result(SECONDS)
    # The job has no further step, and its process ends.
    [left] = list_unpushed(root)
    assert (left.job, left.url, left.commit, left.run) == ("job", address, commit, "run")
    shutil.move(away, remote)
    push_leftovers(root)
    assert pushed(remote, f"left/run/{commit}") == commit
    assert pushed(remote, "tags/phase/0001") == commit


def test_a_root_from_a_backup_takes_nothing_back(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> None:
    """What it had not pushed then, it has pushed since."""
    first = made(root, "one")
    old = UnpushedCheckpoint(job="job", url=address, commit=first, run="run")
    later = made(root, "two", first)
    assert pushing.push_now(later, "run").result(SECONDS) == ""
    record_unpushed(root.repository("job"), old)
    push_leftovers(root)
    assert newest(remote, root) == later


def test_a_start_does_not_wait_for_the_root(root: Root) -> None:
    made(root, "one")
    slow = root.repository("job") / "unpushed.json"
    os.mkfifo(slow)  # Reading it lasts until somebody writes.
    start = threading.Thread(target=PushRegistry().push_leftovers, args=(root,), daemon=True)
    start.start()
    start.join(SECONDS)
    assert not start.is_alive()
    slow.write_bytes(b"")


def test_what_a_process_had_no_time_for_is_recorded(root: Root, address: str) -> None:
    never = JobPusher(root, "job", address, threading.Semaphore(0))
    commit = made(root, "one")
    never.note_checkpoint(commit, "run")
    never.record_rest()
    assert [left.commit for left in list_unpushed(root)] == [commit]


def push_from_two_without_remote(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> tuple[JobPusher, str]:
    """Fail to push a checkpoint, and a later one from another process; then the remote is back.

    Returns:
        The other process's pusher, and its checkpoint.
    """
    away = shutil.move(remote, remote.with_name("away"))
    first = made(root, "one")
    assert pushing.push_now(first, "run").result(SECONDS)
    other = JobPusher(root, "job", address, threading.Semaphore())
    second = made(root, "two", first)
    assert other.push_now(second, "run").result(SECONDS)
    shutil.move(away, remote)
    return other, second


def test_a_late_retry_moves_the_remote_back_to_no_older_checkpoint(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> None:
    other, second = push_from_two_without_remote(pushing, root, remote, address)
    third = made(root, "three", second)
    assert other.push_now(third, "run", hard=True).result(SECONDS) == ""
    assert pushing.push_rest().result(SECONDS) == ""
    assert newest(remote, root) == third
    assert list_unpushed(root) == []


def test_a_retry_pushes_the_later_checkpoint_of_another_process(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> None:
    _, second = push_from_two_without_remote(pushing, root, remote, address)
    assert pushing.push_rest().result(SECONDS) == ""
    assert newest(remote, root) == second


def test_retries_do_not_forget_the_later_checkpoint_of_another_process(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> None:
    away = shutil.move(remote, remote.with_name("away"))
    first = made(root, "one")
    assert pushing.push_now(first, "run").result(SECONDS)
    other = JobPusher(root, "job", address, threading.Semaphore())
    second = made(root, "two", first)
    assert other.push_now(second, "run", {"phase/0002": second}).result(SECONDS)
    assert pushing.push_rest().result(SECONDS)
    assert pushing.push_rest().result(SECONDS)
    pushing.record_rest()
    [left] = list_unpushed(root)
    assert (left.commit, left.tags) == (second, {"phase/0002": second})
    shutil.move(away, remote)
    assert pushing.push_rest().result(SECONDS) == ""
    assert newest(remote, root) == second


def test_a_first_attempt_that_comes_late_moves_the_remote_back_to_no_older_checkpoint(
    pushing: JobPusher, root: Root, remote: Path, address: str
) -> None:
    """Each process waits ever longer between its attempts while the remote is away."""
    away = shutil.move(remote, remote.with_name("away"))
    first = made(root, "one")
    other = JobPusher(root, "job", address, threading.Semaphore())
    for each in (pushing, other):
        assert each.push_now(first, "run").result(SECONDS)
    second = made(root, "two", first)
    pushing.note_checkpoint(second, "run")
    third = made(root, "three", second)
    other.note_checkpoint(third, "run")
    assert other.push_rest().result(SECONDS)
    assert pushing.push_rest().result(SECONDS)
    shutil.move(away, remote)
    assert other.push_rest().result(SECONDS) == ""
    assert pushing.push_rest().result(SECONDS) == ""
    assert newest(remote, root) == third

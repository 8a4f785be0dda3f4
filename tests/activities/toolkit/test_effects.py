"""Tools declared at most once: what is interrupted is reported, what is done is not done again."""

import dataclasses
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import CancelledError

from activities.checkpoints import Files
from activities.job.result_cache import ResultCache
from activities.toolkit.effects import MAY_HAVE_HAPPENED, effect_state, run_effect_once
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError, Unfinished
from protocol.requests import Pending
from tests.activities.standing import Standing, environment


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    return ResultCache(tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Standing.begin(tmp_path / "job").open().files


def never() -> tuple[str, Files]:
    raise AssertionError("done twice")


def test_a_retry_finds_what_the_first_attempt_did(cache: ResultCache, files: Files) -> None:
    first = run_effect_once(cache, "run.7", files, lambda: ("sent", files.write("sent.md", b"x")))
    assert run_effect_once(cache, "run.7", files, never) == first
    assert first[1].read("sent.md") == b"x"
    assert run_effect_once(cache, "run.8", files, lambda: ("sent", files)) == ("sent", files)


def test_what_a_kept_result_stands_for_outlives_its_process(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from activities.checkpoints import Files, Root, open_checkpoints\n"
        "from activities.toolkit.effects import run_effect_once\n"
        "from activities.job.result_cache import ResultCache\n"
        "class Killed(ResultCache):\n"
        "    def put(self, key, data):\n"
        "        super().put(key, data)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "root = Root.open(Path(sys.argv[1]), create=False)\n"
        "files = Files(open_checkpoints(root, 'job').store, sys.argv[2])\n"
        "run_effect_once(Killed(Path(sys.argv[3])), 'run.7', files,\n"
        "     lambda: ('sent', files.write('sent.md', b'x')))\n"
    )
    job = Standing.begin(tmp_path)
    files = job.open().files
    where = [str(job.root.path), files.id, str(tmp_path)]
    ended = subprocess.run([sys.executable, "-c", code, *where], check=False)
    assert ended.returncode == -signal.SIGKILL

    text, after = run_effect_once(ResultCache(tmp_path), "run.7", files, never)
    assert (text, after.read("sent.md")) == ("sent", b"x")


@pytest.mark.parametrize("repeatable", [False, True])
def test_an_attempt_that_wakes_after_its_phase_has_ended_reaches_nobody(
    cache: ResultCache, files: Files, repeatable: bool
) -> None:
    late = environment(local=False)
    late.info = dataclasses.replace(
        late.info,
        started_time=datetime.now(UTC) - timedelta(minutes=1),
        heartbeat_timeout=timedelta(seconds=5),
    )
    # As the SDK does after the server refuses a heartbeat.
    late.on_heartbeat = lambda *_: late.cancel()
    run_effect_once(cache, "run.7", files, lambda: ("sent", files), repeatable=repeatable)
    cache.remove_others(except_key="run.8")
    with pytest.raises(CancelledError):
        late.run(lambda: run_effect_once(cache, "run.7", files, never, repeatable=repeatable))


def test_an_interrupted_call_is_not_repeated(cache: ResultCache, files: Files) -> None:
    def dies() -> tuple[str, Files]:
        raise Killed

    with pytest.raises(Killed):
        run_effect_once(cache, "run.7", files, dies)
    for _ in range(2):
        with pytest.raises(ToolError, match="may have happened") as caught:
            run_effect_once(cache, "run.7", files, lambda: ("sent", files))
        assert str(caught.value) == MAY_HAVE_HAPPENED


def test_what_may_be_repeated_is_made_again_only_if_it_was_not_finished(
    cache: ResultCache, files: Files
) -> None:
    attempts: list[int] = []

    def run() -> tuple[str, Files]:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            raise Killed
        return f"made {len(attempts)}", files

    with pytest.raises(Killed):
        run_effect_once(cache, "run.7", files, run, repeatable=True)
    for _ in range(3):
        assert run_effect_once(cache, "run.7", files, run, repeatable=True) == ("made 2", files)


def test_a_refusal_is_a_result(cache: ResultCache, files: Files) -> None:
    def refuses() -> tuple[str, Files]:
        raise ToolError("no such customer")

    for run in (refuses, lambda: ("sent", files)):
        with pytest.raises(ToolError, match="no such customer"):
            run_effect_once(cache, "run.7", files, run)


def test_a_second_attempt_takes_it_that_the_first_began_elsewhere(
    cache: ResultCache, files: Files
) -> None:
    with pytest.raises(ToolError, match=MAY_HAVE_HAPPENED[:20]):
        run_effect_once(cache, "run.7", files, never, attempt=2)
    text, _ = run_effect_once(
        cache, "run.8", files, lambda: ("sent", files), repeatable=True, attempt=2
    )
    assert text == "sent"


def test_a_second_attempt_knows_of_a_first_one_here_that_reached_nobody(
    cache: ResultCache, files: Files
) -> None:
    def away() -> tuple[str, Files]:
        raise DependencyUnavailable("nobody there")

    for attempt in (1, 2):
        with pytest.raises(DependencyUnavailable):
            run_effect_once(cache, "run.7", files, away, attempt=attempt)
    assert run_effect_once(cache, "run.7", files, lambda: ("sent", files), attempt=3)[0] == "sent"


def test_an_attempt_of_another_activity_says_nothing_of_this_one(
    cache: ResultCache, files: Files
) -> None:
    def away() -> tuple[str, Files]:
        raise DependencyUnavailable("nobody there")

    with pytest.raises(DependencyUnavailable):
        run_effect_once(cache, "run.7", files, away, activity_id="7", attempt=1)
    # A person resumed the job: another host began attempt 1 of the next activity, and was lost.
    with pytest.raises(ToolError, match=MAY_HAVE_HAPPENED[:20]):
        run_effect_once(cache, "run.7", files, never, activity_id="9", attempt=2)


def test_a_call_interrupted_while_it_was_made_ready_has_not_begun(
    cache: ResultCache, files: Files
) -> None:
    def dies() -> None:
        raise Killed

    for attempt in (1, 2):
        with pytest.raises(Killed):
            run_effect_once(cache, "run.7", files, never, attempt=attempt, prepare=dies)
    ready = list[str]()
    text, _ = run_effect_once(
        cache,
        "run.7",
        files,
        lambda: (f"sent, {len(ready)} ready", files),
        attempt=3,
        prepare=lambda: ready.append("here"),
    )
    assert text == "sent, 1 ready"


def test_what_began_or_was_elsewhere_is_not_made_ready_again(
    cache: ResultCache, files: Files
) -> None:
    def dies() -> tuple[str, Files]:
        raise Killed

    with pytest.raises(Killed):
        run_effect_once(cache, "run.7", files, dies, prepare=lambda: None)
    for key in ("run.7", "run.8"):
        with pytest.raises(ToolError, match=MAY_HAVE_HAPPENED[:20]):
            run_effect_once(cache, key, files, never, attempt=2, prepare=never)


def test_what_was_not_reached_is_tried_again(cache: ResultCache, files: Files) -> None:
    def away() -> tuple[str, Files]:
        raise DependencyUnavailable("the server at localhost:1 does not answer")

    with pytest.raises(DependencyUnavailable):
        run_effect_once(cache, "run.7", files, away)
    assert run_effect_once(cache, "run.7", files, lambda: ("sent", files)) == ("sent", files)


def test_what_is_not_finished_is_not_begun_again(cache: ResultCache, files: Files) -> None:
    def takes() -> tuple[str, Files]:
        raise Unfinished(Pending(key="run.7", task="t1"), {"state": "s"})

    for does in (takes, never):
        with pytest.raises(Unfinished) as unfinished:
            run_effect_once(cache, "run.7", files, does)
        assert unfinished.value.pending.task == "t1"
    assert effect_state(cache, "run.7") == {"state": "s"}
    assert effect_state(cache, "run.8") is None


def test_a_turn_that_changed_nothing_comes_once_more(cache: ResultCache, files: Files) -> None:
    def asks() -> tuple[str, Files]:
        raise Unfinished(Pending(key="run.7"), again=True)

    with pytest.raises(Unfinished):
        run_effect_once(cache, "run.7.1", files, asks)
    assert run_effect_once(cache, "run.7.1", files, lambda: ("sent", files))[0] == "sent"


def test_a_result_of_an_earlier_checkpoint_leaves_what_people_changed_since(
    cache: ResultCache, files: Files
) -> None:
    first = files.write("a.md", b"old").write("b.md", b"old").write("gone/c.md", b"old")
    left = first.write("a.md", b"tool").write("b.md", b"tool").delete("gone").write("new", b"tool")
    run_effect_once(cache, "run.7", first, lambda: ("sent", left))
    present = first.write("b.md", b"person").write("new/d.md", b"person").delete("gone")
    text, after = run_effect_once(cache, "run.7", present, never)
    assert text.startswith("sent\n[Since this call began")
    assert text.endswith(": b.md, new]")
    assert {entry.path: after.read_entry(entry) for entry in after.walk()} == {
        "a.md": b"tool",
        "b.md": b"person",
        "new/d.md": b"person",
    } | {entry.path: files.read_entry(entry) for entry in files.walk()}

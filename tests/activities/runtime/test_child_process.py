"""A child process: what it ends with is told, and it never outlives the waiting for it."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from activities.runtime.child_process import ChildResult, run_child
from tests.interruption import Interrupted, interrupted_once


def ran(path: Path, code: str, seconds: float = 20) -> ChildResult:
    script = path / "child.py"
    script.write_text(f"import os, signal, sys, time\n{code}\n")
    return run_child(script, ["one"], b"tea", seconds)


def test_what_it_says_and_how_it_ended_comes_back(tmp_path: Path) -> None:
    child = ran(tmp_path, "print(sys.argv[1], sys.stdin.read(), end='')")
    assert (child.status, child.stdout, child.crash_signal) == (0, b"one tea", "")
    assert not child.was_too_slow
    assert not child.was_too_big
    failed = ran(tmp_path, "print('a\\nlast', file=sys.stderr); sys.exit(3)")
    assert (failed.status, failed.last_line) == (3, "last")
    assert ran(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)").crash_signal == "SIGSEGV"
    assert ran(tmp_path, "raise MemoryError").was_too_big
    assert ran(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)").was_too_big
    assert ran(tmp_path, "os.kill(os.getpid(), signal.SIGALRM)").was_too_slow


def test_one_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    class Noted(subprocess.Popen[bytes]):
        """Records its process id from outside: the process may be killed before it can print
        anything.
        """

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self.pid)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    child = ran(tmp_path, "time.sleep(60)", seconds=1)
    assert child.was_too_slow
    assert not child.was_too_big
    [pid] = begun
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_exception_raised_in_the_waiting_thread_ends_it(tmp_path: Path) -> None:
    begun, mark = tmp_path / "begun", tmp_path / "mark"
    script = tmp_path / "child.py"
    script.write_text(
        f"import time; open({str(begun)!r}, 'w'); time.sleep(2); open({str(mark)!r}, 'w')"
    )
    with pytest.raises(Interrupted), interrupted_once(begun.exists):
        run_child(script, [], b"", 20)
    time.sleep(2.5)
    assert not mark.exists()

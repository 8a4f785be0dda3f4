import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints.locks import file_lock
from activities.runtime.failures import typed_failures
from tests.activities.standing import environment

HOLDER = """
import pathlib, sys, time
from activities.checkpoints.locks import file_lock
with file_lock(pathlib.Path(sys.argv[1]), seconds=1):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_lock_dies_with_its_holder(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    path = tmp_path / "lock"
    child = start(HOLDER, str(path))

    def work() -> None:
        with typed_failures(), file_lock(path, seconds=0.05):
            pass

    with pytest.raises(ApplicationError, match=r"by a worker that is frozen: wake it or end it\.$"):
        environment().run(work)
    child.kill()
    child.wait()
    with file_lock(path, seconds=5):
        pass


def test_threads_take_turns(tmp_path: Path) -> None:
    counted = [0]

    def count() -> None:
        for _ in range(20):
            with file_lock(tmp_path / "lock", seconds=20):
                before = counted[0]
                threading.Event().wait(0.0002)
                counted[0] = before + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [80]

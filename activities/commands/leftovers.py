"""Ends what a command leaves running that nothing confines, wherever it has gone.

A process can leave its session and lose its parent, but not the environment that it was started
with, which holds a mark of the command.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MARK = "RUN_COMMAND_MARK"
"""The variable that holds the mark."""
PASSES = 40
TICK = 0.05


def end_marked(mark: str) -> None:
    """End every process of this user that has the mark."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(PASSES):
        found = [pid for pid in _pids() if wanted in _environment(pid).split(b"\0")]
        if not found:
            return
        kill(found)
        # Once more: what was found may have started others meanwhile.
        time.sleep(TICK)


def kill(pids: Iterable[int]) -> None:
    """Kill those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def _environment(pid: int) -> bytes:
    """Nothing of a process of somebody else, and of one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""

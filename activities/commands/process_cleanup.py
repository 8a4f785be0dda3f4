"""Kills processes that an unconfined command leaves running.

A process can leave its session and lose its parent, but it keeps the environment it was started
with, which contains the command's mark.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MARK_VARIABLE = "RUN_COMMAND_MARK"
"""Name of the variable with the mark."""
PASSES = 40
TICK_SECONDS = 0.05


def kill_marked_processes(mark: str) -> None:
    """Kill every process of this user that has the mark."""
    variable = f"{MARK_VARIABLE}={mark}".encode()
    for _ in range(PASSES):
        pids = [pid for pid in _list_pids() if variable in _process_environment(pid).split(b"\0")]
        if not pids:
            return
        kill_processes(pids)
        # Repeat: those processes may have started others meanwhile.
        time.sleep(TICK_SECONDS)


def kill_processes(pids: Iterable[int]) -> None:
    """Kill those processes that still exist."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _list_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def _process_environment(pid: int) -> bytes:
    """Return a process's environment; empty if it has ended or belongs to somebody else."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""

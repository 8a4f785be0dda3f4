"""Extraction in a process of its own, which may hang, crash or eat memory without harm.

Parsers of foreign files do all three. The child limits itself (memory, processor time, and an
alarm in case its parent is gone); the parent waits in short steps, beats its heart and kills the
child's whole process group when time is up or the waiting is interrupted.
"""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from activities.documents.model import DocumentError, Page
from activities.documents.text import extract, sniff

_CHILD = Path(__file__).resolve().with_name("child.py")
_POLL_SECONDS = 0.25
_IN_PROCESS_BYTES = 1_000_000


def extract_bounded(
    name: str,
    data: bytes,
    *,
    seconds: float = 120,
    memory_mb: int = 2048,
    heartbeat: Callable[[], None] | None = None,
) -> list[Page]:
    """`extract`, in a child process with at most `seconds` and `memory_mb` of address space.

    `heartbeat` is called about four times a second. Whatever it raises, or is raised in the
    calling thread, kills the child and goes on up. Raises `DocumentError` as `extract` does, and
    also when the child ran out of time or memory or crashed.
    """
    if len(data) < _IN_PROCESS_BYTES and sniff(name, data) == "text":
        return extract(name, data)
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(data)
        stdin.seek(0)
        child = _start([name, str(math.ceil(seconds)), str(memory_mb)], stdin, stdout, stderr)
        try:
            status = _wait(child, seconds, heartbeat)
        except BaseException:
            _kill(child)
            raise
        stdout.seek(0)
        stderr.seek(0)
        return _result(name, status, stdout.read(), stderr.read(), (seconds, memory_mb))


def _start(
    arguments: list[str], stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: this folder's modules are parts of a package, not modules of their own.
        [sys.executable, "-P", str(_CHILD), *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _wait(
    child: subprocess.Popen[bytes], seconds: float, heartbeat: Callable[[], None] | None
) -> int | None:
    """The exit status; None if time was up and the child was killed."""
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            _kill(child)
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=min(_POLL_SECONDS, left))
        if heartbeat is not None:
            heartbeat()


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _result(
    name: str, status: int | None, stdout: bytes, stderr: bytes, limits: tuple[float, int]
) -> list[Page]:
    seconds, memory_mb = limits
    too_slow = f"{name}: reading it took more than {seconds:g} s and was stopped; split the file"
    too_big = f"{name}: reading it needs more than {memory_mb} MB of memory; split the file"
    if status is None or -status in (signal.SIGXCPU, signal.SIGALRM):
        raise DocumentError(too_slow)
    if -status == signal.SIGKILL or b"MemoryError" in stderr[-2000:]:
        raise DocumentError(too_big)
    if status < 0:
        raise DocumentError(
            f"{name}: reading it crashed the parser ({signal.Signals(-status).name}); "
            "save it anew from the program it comes from, or as another format"
        )
    if status != 0:
        # Not the document's fault: the child could not even start.
        last = stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]
        raise RuntimeError(f"the extraction process failed with status {status}: {last}")
    answer = json.loads(stdout)
    if "memory" in answer:
        raise DocumentError(too_big)
    if "error" in answer:
        raise DocumentError(answer["error"])
    return [Page(number, text) for number, text in answer["pages"]]

"""Work in a process of its own, which may hang, crash or eat memory without harm.

The parent waits in short steps, beats its heart, and kills the child's whole process group when
time is up or the waiting is interrupted. What the child may use it limits itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from activities.text.plain import replace_surrogates

POLL_SECONDS = 0.25


@dataclass(frozen=True)
class ChildResult:
    """How a child ended."""

    status: int | None
    """Exit status, less than 0 for a signal; None: time was up and it was killed."""
    stdout: bytes
    stderr: bytes

    @property
    def was_too_slow(self) -> bool:
        return self.status is None or -self.status in (signal.SIGXCPU, signal.SIGALRM)

    @property
    def was_too_big(self) -> bool:
        """Killed from outside, as by a kernel that is short of memory, or at its own limit."""
        killed = self.status is not None and -self.status == signal.SIGKILL
        return killed or b"MemoryError" in self.stderr[-2000:]

    @property
    def crash_signal(self) -> str:
        """The name of the signal that ended it, such as `SIGSEGV`; empty without one."""
        return signal.Signals(-self.status).name if self.status and self.status < 0 else ""

    @property
    def last_line(self) -> str:
        """Of what it said of an error."""
        return self.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]


def run_child(
    script: Path,
    arguments: list[str],
    data: bytes,
    seconds: float,
    heartbeat: Callable[[], None] | None = None,
) -> ChildResult:
    """Run a Python script with the data on its standard input.

    `heartbeat` is called about four times a second. Whatever it raises, or is raised in the
    calling thread, kills the child and goes on up.
    """
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(data)
        stdin.seek(0)
        child = subprocess.Popen(
            # -P: modules beside the script are parts of a package, not modules of their own.
            [sys.executable, "-P", str(script), *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            status = _wait_for_child(child, seconds, heartbeat)
        except BaseException:
            _kill_group(child)
            raise
        stdout.seek(0)
        stderr.seek(0)
        return ChildResult(status, stdout.read(), stderr.read())


class OutputReader:
    """What comes out of a pipe, read to its end by a thread; of much, the beginning and the end.

    Args:
        stream: The pipe; closed by `join`.
        head: Bytes kept of the beginning.
        tail: Bytes kept of the end.
    """

    def __init__(self, stream: IO[bytes], head: int, *, tail: int = 0) -> None:
        self.size = 0
        """Bytes that came, kept or not."""
        self._most = (head, tail)
        self._head = bytearray()
        self._tail = bytearray()
        self._stream = stream
        self._thread = threading.Thread(target=self._read_stream, daemon=True)
        self._thread.start()

    def _read_stream(self) -> None:
        head, tail = self._most
        with suppress(OSError, ValueError):
            while piece := self._stream.read1(65_536):  # type: ignore[attr-defined]
                room = head - len(self._head)
                self._head += piece[:room]
                self._tail += piece[room:]
                del self._tail[: max(0, len(self._tail) - tail)]
                self.size += len(piece)

    def join(self) -> None:
        """Wait for the end of the stream, but not for one whom nobody could kill."""
        self._thread.join(2)
        if not self._thread.is_alive():
            self._stream.close()

    @property
    def text(self) -> str:
        gone = self.size - len(self._head) - len(self._tail)
        mark = b"\n[%d bytes of output left out]\n" % gone if gone > 0 else b""
        return replace_surrogates(
            (bytes(self._head) + mark + bytes(self._tail)).decode(errors="replace")
        )


def _wait_for_child(
    child: subprocess.Popen[bytes], seconds: float, heartbeat: Callable[[], None] | None
) -> int | None:
    deadline = time.monotonic() + seconds
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            _kill_group(child)
            return None
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=min(POLL_SECONDS, remaining))
        if heartbeat is not None:
            heartbeat()


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()

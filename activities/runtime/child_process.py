"""Runs work in a separate process, which may hang, crash or eat memory without harm.

The parent waits in short steps, and kills the child's process group when time is up or the wait is
interrupted. The child sets its own resource limits.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from activities.text.safe_text import replace_surrogates

POLL_SECONDS = 0.25


@dataclass(frozen=True)
class ChildResult:
    status: int | None
    """Exit status, negative for a signal; None if it was killed when time was up."""
    stdout: bytes
    stderr: bytes

    @property
    def was_too_slow(self) -> bool:
        return self.status is None or -self.status in (signal.SIGXCPU, signal.SIGALRM)

    @property
    def was_too_big(self) -> bool:
        """Whether it hit its own memory limit or was killed, as by a kernel short of memory."""
        killed = self.status is not None and -self.status == signal.SIGKILL
        return killed or b"MemoryError" in self.stderr[-2000:]

    @property
    def crash_signal(self) -> str:
        return signal.Signals(-self.status).name if self.status and self.status < 0 else ""

    @property
    def last_line(self) -> str:
        return self.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]


def run_child(
    script: Path,
    arguments: list[str],
    data: bytes,
    seconds: float,
) -> ChildResult:
    """Run a Python script with the data as its input; killed if the caller's thread is."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(data)
        stdin.seek(0)
        child = subprocess.Popen(
            # -P: keeps modules beside the script from being imported as top-level modules.
            [sys.executable, "-P", str(script), *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            status = _wait_for_child_process(child, seconds)
        except BaseException:
            _kill_child_group(child)
            raise
        stdout.seek(0)
        stderr.seek(0)
        return ChildResult(status, stdout.read(), stderr.read())


class ChildOutputReader:
    """Reads a pipe to its end in a thread, keeping the beginning and the end of long output.

    Args:
        stream: The pipe; closed by `join`.
        head: Bytes kept of the beginning.
        tail: Bytes kept of the end.
    """

    def __init__(self, stream: IO[bytes], head: int, *, tail: int = 0) -> None:
        self.size = 0
        """Bytes received, kept or not."""
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
        """Wait up to 2 s for the end of the stream: an unkillable process may keep it open."""
        self._thread.join(2)
        if not self._thread.is_alive():
            self._stream.close()

    @property
    def text(self) -> str:
        dropped = self.size - len(self._head) - len(self._tail)
        mark = b"\n[%d bytes of output left out]\n" % dropped if dropped > 0 else b""
        return replace_surrogates(
            (bytes(self._head) + mark + bytes(self._tail)).decode(errors="replace")
        )


def _wait_for_child_process(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    # An exception that another thread raises in this one arrives between two steps.
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            _kill_child_group(child)
            return None
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=min(POLL_SECONDS, remaining))


def _kill_child_group(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()

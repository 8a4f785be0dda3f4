"""Clocks that jump: libfaketime, preloaded into workers alone, reads the offset from a file.

Only the date jumps; the monotonic clock, which measures durations, goes on, as it does when
somebody sets a machine's clock.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.crash.processes import REPOSITORY

CACHE_SECONDS = 1
"""Time until a worker notices a new offset."""
_PLACES = (
    "tests/.fetched/faketime/libfaketime/vendor/libfaketime/src/libfaketime.so.1",
    "/usr/lib/*/faketime/libfaketime.so.1",
)


def find_library() -> Path | None:
    """Return a libfaketime that works here, fetched by `make chaos` or installed by Debian."""
    for place in _PLACES:
        anchor = Path("/") if place.startswith("/") else REPOSITORY
        for library in anchor.glob(place.lstrip("/")):
            if _works(library):
                return library
    return None


def _works(library: Path) -> bool:
    """Return whether a process can be set an hour ahead, which fails on other kinds of machines."""
    completed = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={**os.environ, **preloaded(library), "FAKETIME": "+3600"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return completed.returncode == 0 and float(completed.stdout) > time.time() + 3000


def preloaded(library: Path) -> dict[str, str]:
    """Return the environment of a process whose clock, and that of its forks, may jump."""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_CACHE_DURATION": str(CACHE_SECONDS),
        "NO_FAKE_STAT": "1",
    }


class Clock:
    """The offset of one worker's clock after another."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.environment = {"FAKETIME_TIMESTAMP_FILE": str(file)}
        self.set(0)

    def set(self, seconds: int) -> None:
        """Jump to so many seconds from the true time."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{seconds:+d}\n")
        draft.replace(self._file)

"""Clocks that jump: libfaketime, preloaded into workers alone, reads the offset from a file.

Only what tells the date jumps; what measures spans (the monotonic clock) goes on, as it does when
somebody sets a machine's clock.
"""

from __future__ import annotations

from pathlib import Path

from tests.crash.processes import REPOSITORY

CACHE_SECONDS = 1
"""How soon a worker notices a new offset."""
_PLACES = (
    "tests/.fetched/faketime/libfaketime/vendor/libfaketime/src/libfaketime.so.1",
    "/usr/lib/*/faketime/libfaketime.so.1",
)


def find_library() -> Path | None:
    """libfaketime, as `make chaos` fetches it or as Debian installs it."""
    for place in _PLACES:
        anchor = Path("/") if place.startswith("/") else REPOSITORY
        if found := sorted(anchor.glob(place.lstrip("/"))):
            return found[0]
    return None


def preloaded(library: Path) -> dict[str, str]:
    """Environment of a process whose clock, and whose forks' clocks, may jump."""
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
        """Jump to so many seconds beside the true time."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{seconds:+d}\n")
        draft.replace(self._file)

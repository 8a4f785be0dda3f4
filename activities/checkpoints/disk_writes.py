"""Write files, and flush files and folders to disk."""

from __future__ import annotations

import os
from pathlib import Path

from activities.checkpoints.checkpoint_errors import path_in_errors


def fsync_path(path: Path) -> None:
    """Flush a file, or a folder's listing, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with path_in_errors(path):
            os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(handle: int, data: bytes) -> None:
    """Write all data to a descriptor.

    For a small file, Python's file objects make several more system calls, and after each the
    thread waits again for the interpreter's lock.
    """
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]

"""Read and write small files, and flush files and folders to disk."""

from __future__ import annotations

import os
from pathlib import Path

from activities.checkpoints.checkpoint_errors import path_in_errors

READ_BYTES = 64 << 10
"""Larger than nearly every file that `read_whole` is for."""


def fsync_path(path: Path) -> None:
    """Flush a file, or a folder's listing, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with path_in_errors(path):
            os.fsync(handle)
    finally:
        os.close(handle)


def read_whole(path: str) -> bytes:
    """Return a small file's content.

    Python's file objects make several more system calls, and after each the thread waits again for
    the interpreter's lock.

    Raises:
        OSError: the file cannot be read; FileNotFoundError if there is none.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(handle, READ_BYTES), b""))
    finally:
        os.close(handle)


def write_whole(handle: int, data: bytes) -> None:
    """Write all data to a descriptor, with no more system calls than it needs, as `read_whole`."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]

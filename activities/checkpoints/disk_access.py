"""Read and write small files, flush files and folders to disk, and lock files."""

import os
import secrets
from contextlib import suppress
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


def replace_file(path: Path, text: str) -> None:
    """Write a small file whole or not at all; it is on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    draft.write_text(text)
    fsync_path(draft)
    draft.replace(path)
    fsync_path(path.parent)


def create_file(path: Path, text: str) -> None:
    """Write a small file whole, unless it exists: of several processes one creates it."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        with path_in_errors(draft):
            draft.write_text(text)
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)


def read_whole(path: str) -> bytes:
    """Return a small file's content.

    Python's file objects make several more system calls, and after each the thread waits again for
    the interpreter's lock. Raises OSError: the file cannot be read; FileNotFoundError if there is
    none.
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

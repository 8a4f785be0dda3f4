"""The size of folders that commands write."""

import errno
import os
from contextlib import suppress
from pathlib import Path

UNCOUNTABLE = 1 << 62
"""The size of a folder with folders nested so deeply that no path names them."""


def count_folder_bytes(folder: Path) -> int:
    """Return the bytes on disk of everything below the folder, as far as it is readable.

    Commands nest folders more deeply than a recursive walk can follow.
    """
    total, pending = 0, [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return UNCOUNTABLE
    return total

"""The size of folders that commands write."""

import os
from contextlib import suppress
from pathlib import Path


def count_folder_bytes(folder: Path) -> int:
    """Return the bytes on disk of everything below the folder, as far as it is readable."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).lstat().st_blocks * 512
    return total

"""Removing folders for good, whatever modes their content was given."""

import os
import shutil
from contextlib import suppress
from pathlib import Path


def remove(path: Path) -> None:
    """Removes what is at a path: a link itself, not what it leads to. Nothing there is fine.

    Others may remove the same at the same time. Raises OSError when something stays.
    """
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # somebody else was faster
            if path.is_dir() and not path.is_symlink():
                unlock(path)
                shutil.rmtree(path)
            else:
                path.unlink()


def unlock(folder: Path) -> None:
    """Makes every folder in a folder one that can be emptied; others may remove it meanwhile."""
    for at, names, _ in os.walk(folder):
        for path in (Path(at) / name for name in names):
            if not path.is_symlink():
                with suppress(FileNotFoundError):
                    path.chmod(0o700)

"""Remove folders for good, whatever modes their content has."""

import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.entry_names import MAX_DEPTH


def remove_path(path: Path) -> None:
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # another process removed it first
            if path.is_dir() and not path.is_symlink():
                make_removable(path)
                shutil.rmtree(path)
            else:
                path.unlink()


def make_removable(folder: Path) -> None:
    """Make a folder and its subfolders removable; others may remove it meanwhile.

    Folders nested deeper than a checkpoint allows are moved to the top: some paths are too long for
    any system call, and some depths for any recursive removal.
    """
    with suppress(FileNotFoundError):
        folder.chmod(0o700)
    tops = [folder]
    for top in tops:
        with suppress(FileNotFoundError):
            for parent, names, _, fd in os.fwalk(top):
                is_deep = len(Path(parent).parts) - len(top.parts) >= MAX_DEPTH
                for name in names:
                    with suppress(FileNotFoundError):
                        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                        if stat.S_ISLNK(status.st_mode):
                            continue
                        os.chmod(name, 0o700, dir_fd=fd)
                        if is_deep:
                            tops.append(folder / secrets.token_hex(6))
                            os.rename(name, tops[-1], src_dir_fd=fd)

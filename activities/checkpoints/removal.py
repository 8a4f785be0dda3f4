"""Removing folders for good, whatever modes their content was given."""

import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.paths import MAX_DEPTH


def remove_path(path: Path) -> None:
    """Removes what is at a path: a link itself, not what it leads to. Nothing there is fine.

    Others may remove the same at the same time. Raises OSError when something stays.
    """
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # somebody else was faster
            if path.is_dir() and not path.is_symlink():
                make_removable(path)
                shutil.rmtree(path)
            else:
                path.unlink()


def make_removable(folder: Path) -> None:
    """Makes a folder, and every folder in it, one that can be emptied; others may remove it
    meanwhile.

    What a command nested deeper than a checkpoint holds comes to the top: there are paths that no
    call takes, and levels that no removal goes down to.
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

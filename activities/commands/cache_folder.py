"""Caches of commands: a folder per job that programs such as pip and npm reuse between commands.

A cache is in no checkpoint. Setup and `run_command` have separate caches, so that nothing an agent
writes reaches a layer. A job's commands may share the folder at the same time; it is emptied only
when no command uses it.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

from activities.checkpoints import Root
from activities.checkpoints.locks import file_lock
from activities.checkpoints.removal import make_removable
from activities.commands.private_folder import private_path
from config.schema.shell import ShellConfig

LOCK_SECONDS = 2


@contextmanager
def cache_folder(
    root: Root, job: str, config: ShellConfig, user: Literal["commands", "setup"]
) -> Iterator[Path | None]:
    """Yield the folder that a command sees at `/cache`; None if there is none or it stays locked.

    Afterwards the folder is emptied if it exceeds `shell.cache_bytes` and no command uses it.
    """
    if not config.caches:
        yield None
        return
    place = private_path(root, job) / "caches" / user
    folder, lock = place / "content", place / "lock"
    place.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(lock, seconds=LOCK_SECONDS, shared=True))
        except TimeoutError:
            # A cache only saves time, so the command runs without it.
            yield None
            return
        folder.mkdir(exist_ok=True)
        # A command may have removed our permissions.
        folder.chmod(0o700)
        yield folder
    _empty_large_cache_folder(place, folder, lock, config.cache_bytes)


def _empty_large_cache_folder(place: Path, folder: Path, lock: Path, most: int) -> None:
    trash = place / "gone"
    try:
        with file_lock(lock, seconds=0):
            make_removable(folder)
            if count_folder_bytes(folder) > most:
                trash.mkdir(exist_ok=True)
                folder.rename(trash / secrets.token_hex(6))
    except TimeoutError:
        # Only the last command that uses the folder gets the lock and checks its size.
        return
    shutil.rmtree(trash, ignore_errors=True)


UNCOUNTABLE = 1 << 62
"""The size of a folder with folders nested so deeply that no path names them."""


def count_folder_bytes(folder: Path) -> int:
    """Return the bytes on disk of everything readable below the folder, however deeply nested."""
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

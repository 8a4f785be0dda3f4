"""A folder that gets its place when it is complete."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pygit2

STALE_SECONDS = 600
"""A draft that is so old belongs to a process that is gone: making one takes milliseconds."""


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Where to make what then gets its place at `path`; a kill or a race harms nothing.

    Whoever is faster keeps the place. Raises OSError, pygit2.GitError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale_drafts(path.parent)
    # The leading dot keeps a draft apart from every job's name.
    draft = path.parent / f".new-{secrets.token_hex(6)}"
    try:
        yield draft
        draft.rename(path)
    except (OSError, pygit2.GitError):
        # Half of one must not take the last room there is, once for each attempt.
        shutil.rmtree(draft, ignore_errors=True)
        if not path.exists():
            raise


def _remove_stale_drafts(folder: Path) -> None:
    """Remove what processes left that were killed on the way."""
    old = time.time() - STALE_SECONDS
    for draft in folder.glob(".new-*"):
        with suppress(FileNotFoundError):
            if draft.stat().st_mtime < old:
                shutil.rmtree(draft, ignore_errors=True)

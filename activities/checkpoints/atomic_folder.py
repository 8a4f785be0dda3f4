"""Create a folder atomically: it appears at its path only when complete."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pygit2

STALE_SECONDS = 600
"""Age at which a draft counts as abandoned; creating one takes milliseconds."""


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a draft, renamed to `path` on success unless another process was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale_drafts(path.parent)
    # The leading dot keeps a draft apart from every job's name.
    draft = path.parent / f".new-{secrets.token_hex(6)}"
    try:
        yield draft
        draft.rename(path)
    except (OSError, pygit2.GitError):
        # Each failed attempt would otherwise leave a partial draft and fill the disk.
        shutil.rmtree(draft, ignore_errors=True)
        if not path.exists():
            raise


def _remove_stale_drafts(folder: Path) -> None:
    old = time.time() - STALE_SECONDS
    for draft in folder.glob(".new-*"):
        with suppress(FileNotFoundError):
            if draft.stat().st_mtime < old:
                shutil.rmtree(draft, ignore_errors=True)

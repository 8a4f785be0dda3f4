"""Opening the workspaces root, with a message a person can act on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import SetupError

if TYPE_CHECKING:
    from activities.checkpoints import Root


def open_root(folder: Path) -> Root:
    """The root at this folder, made when it is missing.

    Raises:
        SetupError: it cannot be made or written to.
    """
    # Late: it loads libgit2, which only workers need.
    from activities.checkpoints import Root, RootError  # noqa: PLC0415

    check_writable(folder)
    try:
        return Root.open(folder, create=True)
    except RootError as error:
        raise SetupError(str(error)) from None


def check_writable(folder: Path) -> None:
    """Make the folder if it is missing, and write to it.

    Raises:
        SetupError: that failed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"writable")
    except OSError as error:
        raise SetupError(
            f"the workspaces root {folder} cannot be written "
            f"({(error.strerror or str(error)).lower()}); "
            "set LONGHAUL_WORKSPACES to a folder that can"
        ) from None

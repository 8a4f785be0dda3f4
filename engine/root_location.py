"""Opens the workspaces root, with actionable error messages."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.setup_errors import SetupError

if TYPE_CHECKING:
    from activities.checkpoints import Root


def open_workspaces_root(folder: Path) -> Root:
    """Open the root at this folder, and create it if it is missing.

    Raises SetupError: the folder cannot be created or written to.
    """
    # Imported on use: it loads libgit2, which most commands do without.
    from activities.checkpoints import Root, RootError  # noqa: PLC0415

    check_root_writable(folder)
    try:
        return Root.open(folder, create=True)
    except RootError as error:
        raise SetupError(str(error)) from None


def check_open_root(root: Root) -> None:
    """Check that a root that is open is still there and writable.

    Raises SetupError: its folder is gone, is another root, or cannot be written to.
    """
    from activities.checkpoints import RootError  # noqa: PLC0415

    try:
        root.check_presence()
    except RootError as error:
        raise SetupError(str(error)) from None
    check_root_writable(root.path)


def check_root_writable(folder: Path) -> None:
    """Create the folder if it is missing, and check that it is writable.

    Raises SetupError: the folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"writable")
    except OSError as error:
        raise SetupError(describe_unwritable_root(folder, error)) from None


def describe_unwritable_root(folder: Path, error: OSError) -> str:
    """Return why the root cannot be written, and what to do about it."""
    # Another folder is no remedy for a full one: running jobs are in it.
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free space there" if is_full else "set LONGHAUL_WORKSPACES to a folder that can"
    why = (error.strerror or str(error)).lower()
    return f"the workspaces root {folder} cannot be written ({why}); {remedy}"


def workspaces_root() -> Path:
    """Return the absolute path of the folder with all workspaces.

    Raises SetupError: the path refers to the home of an unknown user.
    """
    configured = os.environ.get("LONGHAUL_WORKSPACES") or "workspaces"
    try:
        return Path(configured).expanduser().absolute()
    except RuntimeError:
        raise SetupError(f"LONGHAUL_WORKSPACES={configured}: no such user or home") from None

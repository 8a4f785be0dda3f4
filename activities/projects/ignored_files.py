"""Leaves out files that do not belong into a repository: new ones that `.gitignore` names."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2

from activities.checkpoints import Files, GitNotInstalled, diff_files
from activities.checkpoints.entry_names import name_to_bytes
from activities.checkpoints.git import run_git
from activities.checkpoints.volatile_paths import volatile_matcher

IGNORE = ".gitignore"


def without_ignored(files: Files, folder: str, before: str, caches: Sequence[str]) -> Files:
    """Return the workspace without the folder's new files that are ignored or left by test runs.

    Files that existed before belong to the repository and stay.

    Args:
        files: The workspace.
        folder: Name of the folder with the repository's files.
        before: Hex id of that folder's original tree.
        caches: Patterns of files that runs leave.
    """
    if files.tree_entry((folder,)) is None:
        return files
    product = files.subfolder(folder)
    new = [
        change.path for change in diff_files(Files(files.store, before), product) if not change.old
    ]
    is_left = volatile_matcher(caches)
    for path in _ignored(product, new) | {path for path in new if is_left(path)}:
        files = files.with_tree_entry((folder, *path.split("/")), None)
    return files


def _ignored(product: Files, paths: list[str]) -> set[str]:
    """Return the paths that `.gitignore` files in their folders exclude."""
    if not paths:
        return set()
    folders = {
        "/".join(parts[:n]) for p in paths for parts in [p.split("/")] for n in range(len(parts))
    }
    with TemporaryDirectory() as place:
        work_tree = pygit2.init_repository(place)
        for folder in folders:
            raw = product.tree_entry(tuple(filter(None, [*folder.split("/"), IGNORE])))
            if raw is not None and raw.mode in (0o100644, 0o100755):
                target = Path(place, folder, IGNORE)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(product.store.read(raw.id))
        try:
            return _ignored_by_git(Path(place), paths)
        except GitNotInstalled:
            return {path for path in paths if _ignored_names(work_tree, path)}


def _ignored_by_git(work_tree: Path, paths: list[str]) -> set[str]:
    """Return the ignored paths as git itself sees it.

    libgit2 overlooks a pattern with `!` that takes back one of another folder's `.gitignore`.
    """
    # The program fails if it finds no path ignored, so there is always one.
    ignored = secrets.token_hex(16)
    exclude = work_tree / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text(f"/{ignored}\n")
    listed = run_git(
        None,
        # The same for every host: not the patterns of its user.
        *("-c", f"core.excludesFile={os.devnull}", "-C", str(work_tree)),
        *("check-ignore", "--no-index", "-z", "--stdin"),
        stdin=b"".join(name_to_bytes(path) + b"\0" for path in [*paths, ignored]),
        errors="surrogateescape",
    )
    return set(listed.split("\0")) & set(paths)


def _ignored_names(work_tree: pygit2.Repository, path: str) -> bool:
    try:
        return bool(work_tree.path_is_ignored(name_to_bytes(path).decode()))
    except (ValueError, pygit2.GitError):  # libgit2 cannot check such a name
        return False

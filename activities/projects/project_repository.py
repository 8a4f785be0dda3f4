"""A project's git repository: an ordinary one, which people can clone.

Every operation goes from commit to commit and is a function of its arguments and the date, so
that one that is retried makes the same commits again. Branches are put where the record says that
they are; nothing is read from them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pygit2
from pygit2.enums import DeltaStatus, FileMode, ObjectType

from activities.checkpoints import CheckpointMissing, Files, Root, job_folder_name, unescape_name
from activities.checkpoints.alternates import borrows_objects
from activities.checkpoints.atomic_folder import atomic_folder
from activities.checkpoints.entry_names import (
    entry_name,
    is_dot_git_name,
    name_from_bytes,
    name_to_bytes,
)
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import (
    EXECUTABLE,
    FILE,
    FOLDER,
    LINK,
    Node,
    TreeEntry,
    build_tree,
    encode_tree_shard,
    list_tree_entries,
)
from activities.projects.merge_conflicts import settle_merge_conflicts
from activities.text.safe_text import replace_surrogates
from protocol.repository_link import RepositoryOrigin
from protocol.short_text import one_line

MAIN = "main"
EMAIL = "longhaul@localhost"
MOST_SUBJECTS = 8
"""Of the author of commits that the system makes."""
PINNED = "origin.json"
"""File that records what was fetched when the job or project began. Written last."""
NOWHERE = pygit2.Oid(raw=b"\1" * 20)
MODES = {FileMode.BLOB: FILE, FileMode.BLOB_EXECUTABLE: EXECUTABLE, FileMode.LINK: LINK}


def project_repository_path(root: Root, project: str) -> Path:
    """Return the path of a project's repository."""
    return root.path / ".longhaul" / "projects" / f"{job_folder_name(project)}.git"


def project_git_accepts_name(builder: Any, name: str) -> bool:
    """Return whether git accepts a file or folder of that name; `builder` is only for trying."""
    try:
        # Git does not check whether a submodule's commit exists.
        builder.insert(name, NOWHERE, FileMode.COMMIT)
    except (
        ValueError,
        pygit2.GitError,
    ):  # it is not UTF-8, or some file system equates it with `.git`
        return False
    return True


@dataclass(frozen=True)
class Since:
    """The original state of a folder: a commit, and its tree as a folder of a workspace."""

    commit: str
    folder: str
    """Hex id of that tree."""


class ProjectRepository:
    """A handle on a project's repository; for one thread."""

    def __init__(self, path: Path) -> None:
        """Raises CheckpointMissing if the repository does not exist."""
        self.path = path
        self.moved_branches: dict[str, str] = {}
        """Commits by branch, for branches moved through this handle."""
        try:
            self.git = pygit2.Repository(str(path))
        except (pygit2.GitError, KeyError):
            raise CheckpointMissing("", f"There is no project repository at {path}.") from None

    @classmethod
    def create(cls, path: Path) -> ProjectRepository:
        """Open the repository, creating it if needed; safe against kills and races."""
        if not path.exists():
            with atomic_folder(path) as draft:
                created = pygit2.init_repository(str(draft), bare=True, initial_head=MAIN)
                # Work that was not accepted is referred to only by Temporal's history, so git must
                # keep it.
                created.config["gc.auto"] = 0
                created.config["gc.pruneExpire"] = "never"
                created.free()
        return cls(path)

    # Reading

    @property
    def origin(self) -> RepositoryOrigin | None:
        """The record of what was fetched into it; None if it began empty."""
        with suppress(FileNotFoundError):
            return RepositoryOrigin.model_validate_json((self.path / PINNED).read_bytes())
        return None

    def get_commit(self, commit: str) -> pygit2.Commit:
        """Return a commit. Raises CheckpointMissing."""
        try:
            target = self.git[commit]
        except (KeyError, ValueError):
            raise CheckpointMissing(commit) from None
        if not isinstance(target, pygit2.Commit):
            raise CheckpointMissing(commit, f"{commit} is not a commit.")
        return target

    def tree_id(self, commit: str) -> str:
        return str(self.get_commit(commit).tree_id)

    def read_file(self, commit: str, path: str) -> bytes | None:
        """Return a file's content at a commit; None if there is no such file."""
        try:
            blob = self.get_commit(commit).tree[path]
        except KeyError:
            return None
        return bytes(blob.data) if isinstance(blob, pygit2.Blob) else None

    def changed_paths(self, before: str, after: str) -> list[str]:
        """Return the paths at which two commits differ; of a deleted file `a.md (deleted)`."""
        difference = self.get_commit(before).tree.diff_to_tree(self.get_commit(after).tree)
        return sorted(
            delta.new_file.path + " (deleted)" * (delta.status == DeltaStatus.DELETED)
            for delta in difference.deltas
        )

    def subjects(self, commit: str) -> list[str]:
        """Return the subjects of the last commits up to this one, merges left out."""
        walker = self.git.walk(pygit2.Oid(hex=commit))
        commits = (each for _, each in zip(range(50), walker, strict=False))
        subjects = [
            one_line(replace_surrogates(each.message.partition("\n")[0]), 100)
            for each in commits
            if len(each.parent_ids) < 2
        ]
        return [subject for subject in subjects if subject][:MOST_SUBJECTS]

    def branch_tip(self, branch: str) -> str:
        """Return the last commit of a branch; empty if there is no such branch."""
        ref = self.git.references.get(f"refs/heads/{branch}")
        return str(ref.target) if ref is not None else ""

    def diff_from(self, commit: str, tree: str) -> pygit2.Diff:
        """Return how a tree differs from a commit."""
        return self.get_commit(commit).tree.diff_to_tree(self._get_tree(tree))

    # Conversion from and to workspaces

    def put_into(self, files: Files, commit: str, folder: str) -> Files:
        """Return the files with the commit's tree as a folder, replacing that folder.

        Contents are copied, unless the files' store borrows objects from this repository.
        """
        return files.with_tree_entry(
            (folder,), TreeEntry(FOLDER, self.as_folder(files.store, commit))
        )

    def as_folder(self, store: ObjectStore, commit: str) -> bytes:
        """Write a commit's tree as a workspace folder and return its id."""
        return self._as_folder(store, self.get_commit(commit).tree)

    def files_of(self, store: ObjectStore, tree: str) -> Files:
        """Return a tree of this repository as workspace files."""
        return Files(store, self._as_folder(store, self._get_tree(tree)).hex())

    def _get_tree(self, tree: str) -> pygit2.Tree:
        target = self.git[tree]
        assert isinstance(target, pygit2.Tree)
        return target

    def _as_folder(self, store: ObjectStore, tree: pygit2.Tree) -> bytes:
        shared = borrows_objects(store.path, self.path)
        converted: dict[pygit2.Oid, bytes] = {}

        def convert(tree: pygit2.Tree) -> bytes:
            if tree.id in converted:
                return converted[tree.id]
            node: Node = {}
            for entry in tree:
                name = entry_name(name_from_bytes(entry.raw_name or b""))
                mode = entry.filemode
                if mode == FOLDER:
                    node[name] = TreeEntry(FOLDER, convert(cast("pygit2.Tree", entry)))
                elif mode in MODES:
                    content = (
                        entry.id.raw
                        if shared
                        else store.write_blob(cast("pygit2.Blob", entry).data)
                    )
                    node[name] = TreeEntry(MODES[FileMode(mode)], content)
            converted[tree.id] = build_tree(store, node)
            return converted[tree.id]

        return convert(tree)

    def take_from(self, files: Files, folder: str, since: Since | None = None) -> str:
        """Write a workspace folder as a git tree and return its id; skip names that git refuses.

        Args:
            files: The workspace.
            folder: Name of the folder.
            since: The folder's original state: unchanged parts are not read, and entries that a
                workspace cannot hold, such as submodules, are kept.
        """
        raw = files.tree_entry((folder,))
        now = raw.id if raw and raw.mode == FOLDER else EMPTY_TREE
        if since is None:
            return str(self._as_tree(files.store, now, EMPTY_TREE, None))
        before = self.get_commit(since.commit).tree
        return str(self._as_tree(files.store, now, bytes.fromhex(since.folder), before))

    def _as_tree(
        self, store: ObjectStore, folder: bytes, old_folder: bytes, old: pygit2.Tree | None
    ) -> pygit2.Oid:
        """Write a folder as a tree; `old_folder` is the workspace form of the tree `old`."""
        if old is not None and folder == old_folder:
            return old.id
        trial = self.git.TreeBuilder()
        written: dict[bytes, TreeEntry] = {}
        was = list_tree_entries(store, old_folder) if old is not None else {}
        now = list_tree_entries(store, folder)
        olds: dict[bytes, pygit2.Object] = {}
        for entry in old or ():
            name = entry_name(name_from_bytes(entry.raw_name or b""))
            olds[name] = entry
            if entry.filemode == FileMode.COMMIT and name not in now:
                written[entry.raw_name or b""] = TreeEntry(FileMode.COMMIT, entry.id.raw)
        for name, raw in now.items():
            before = olds.get(name)
            if before is not None and was.get(name) == raw:
                written[before.raw_name or b""] = TreeEntry(before.filemode, before.id.raw)
                continue
            plain = unescape_name(name)
            if is_dot_git_name(plain) or not project_git_accepts_name(trial, plain):
                continue
            if raw.mode == FOLDER:
                inner = before if isinstance(before, pygit2.Tree) else None
                old_inner = was[name].id if inner is not None and name in was else EMPTY_TREE
                below = self._as_tree(store, raw.id, old_inner, inner)
                # Git has no empty folders, so leave them out.
                if below.raw != EMPTY_TREE:
                    written[name_to_bytes(plain)] = TreeEntry(FOLDER, below.raw)
            else:
                blob = self.git.create_blob(store.read(raw.id))
                written[name_to_bytes(plain)] = TreeEntry(raw.mode, blob.raw)
        return self.git.odb.write(ObjectType.TREE, encode_tree_shard(written))

    # Writing

    def with_files(self, tree: str, files: Mapping[str, bytes | None]) -> str:
        """Write a tree with these files at its top, without those that are None; return its id."""
        builder = self.git.TreeBuilder(tree)
        for name, data in files.items():
            if data is not None:
                builder.insert(name, self.git.create_blob(data), FILE)
            elif builder.get(name) is not None:
                builder.remove(name)
        return str(builder.write())

    def with_taken(
        self, tree: str, other: str, is_wanted: Callable[[str, bool], bool]
    ) -> tuple[str, list[str], list[str]]:
        """Take the wanted files of another tree into a tree.

        Args:
            is_wanted: Decides by path, and whether the file is missing in the first tree.

        Returns:
            The new tree's id, the paths that were taken, and the other paths that differ.
        """
        before, after = self._get_tree(tree), self._get_tree(other)
        added, left_out = list[pygit2.DiffFile](), list[str]()
        for each in before.diff_to_tree(after).deltas:
            is_missing, file = each.status == DeltaStatus.ADDED, each.new_file
            is_there = each.status != DeltaStatus.DELETED
            if is_there and is_wanted(file.path, is_missing):
                added.append(file)
            else:
                left_out.append(file.path)
        index = pygit2.Index()
        index.read_tree(before)
        for file in added:
            index.add(pygit2.IndexEntry(file.path, file.id, file.mode))
        paths = sorted(file.path for file in added)
        return (str(index.write_tree(self.git)) if added else tree), paths, sorted(left_out)

    def commit(
        self, tree: str, parents: list[str], message: str, timestamp: int, author: str = ""
    ) -> str:
        """Write a commit without moving a branch; the same arguments give the same commit.

        Args:
            author: Such as Ada <ada@example.org>; empty for the system.
        """
        who = pygit2.Signature("longhaul", EMAIL, timestamp, 0)
        name, _, address = author.removesuffix(">").rpartition(" <")
        by = pygit2.Signature(name, address, timestamp, 0) if author else who
        ids = [pygit2.Oid(hex=parent) for parent in parents]
        commit_id = self.git.create_commit(None, by, who, message, pygit2.Oid(hex=tree), ids)
        return str(commit_id)

    def merge(self, head: str, commit: str, message: str, timestamp: int) -> tuple[str, list[str]]:
        """Merge two commits; return the merge and a line for each conflict.

        A merge with conflicts contains both versions: within a text between git's conflict marks,
        otherwise as two files side by side.
        """
        ours, theirs = self.get_commit(head), self.get_commit(commit)
        base = self.git.merge_base(ours.id, theirs.id)
        if base == theirs.id:
            return head, []
        index = self.git.merge_commits(ours, theirs)
        conflicts = settle_merge_conflicts(self.git, index, ours)
        tree = str(index.write_tree(self.git))
        if not conflicts:
            if tree == self.tree_id(head):
                return head, []
            # Make one commit for each piece of work; the job's branch has its single steps.
            return self.commit(tree, [head], message, timestamp), []
        # The side that has to resolve the conflict is the first parent.
        return self.commit(tree, [commit, head], "Both versions\n\n" + message, timestamp), sorted(
            conflicts
        )

    def set_branch(self, branch: str, commit: str) -> None:
        """Point a branch at a commit, for people who look at the repository."""
        if not pygit2.reference_is_valid_name(f"refs/heads/{branch}"):
            return
        ref = self.path / "refs" / "heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path / f"draft-{secrets.token_hex(6)}"
        draft.write_text(f"{commit}\n")
        # Replace the file atomically, without a lock that a killed worker could leave behind.
        try:
            draft.replace(ref)
            self.moved_branches[branch] = commit
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()

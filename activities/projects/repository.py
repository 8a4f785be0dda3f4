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
from activities.checkpoints.entry_names import entry_name, from_bytes, to_bytes
from activities.checkpoints.objects import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import (
    EXECUTABLE,
    FILE,
    FOLDER,
    LINK,
    Node,
    TreeEntry,
    build_tree,
    list_tree_entries,
    tree_data,
)
from protocol.repository import RepositoryOrigin

MAIN = "main"
EMAIL = "longhaul@localhost"
"""Of the author of commits that the system makes."""
PINNED = "origin.json"
"""What was fetched into a repository when its job or project began. Written last."""
NOWHERE = pygit2.Oid(raw=b"\1" * 20)
MODES = {FileMode.BLOB: FILE, FileMode.BLOB_EXECUTABLE: EXECUTABLE, FileMode.LINK: LINK}


def project_repository_path(root: Root, project: str) -> Path:
    """Where the repository of a project is."""
    return root.path / ".longhaul" / "projects" / f"{job_folder_name(project)}.git"


def git_accepts_name(builder: Any, name: str) -> bool:
    """Whether git has a place for a file or folder of that name, tried on a builder of no use."""
    try:
        # Of a commit elsewhere git does not ask whether it is there.
        builder.insert(name, NOWHERE, FileMode.COMMIT)
    except (ValueError, pygit2.GitError):  # no UTF-8; or what some file system takes for `.git`
        return False
    return True


def is_git_folder(name: str) -> bool:
    """Git takes none, and a project has one history: it is left out without a word."""
    return name.lower() == ".git"


@dataclass(frozen=True)
class Since:
    """Where a folder began: a commit, and its tree as a folder of a workspace."""

    commit: str
    folder: str
    """Hex id."""


class ProjectRepository:
    """A handle on a project's repository; for one thread."""

    def __init__(self, path: Path) -> None:
        """Raises CheckpointMissing if there is none."""
        self.path = path
        self.moved_branches: dict[str, str] = {}
        """Commits by name of the branches that were put there through this handle."""
        try:
            self.git = pygit2.Repository(str(path))
        except (pygit2.GitError, KeyError):
            raise CheckpointMissing("", f"There is no project repository at {path}.") from None

    @classmethod
    def create(cls, path: Path) -> ProjectRepository:
        """The repository, made if need be; a kill or a race harms nothing."""
        if not path.exists():
            with atomic_folder(path) as draft:
                created = pygit2.init_repository(str(draft), bare=True, initial_head=MAIN)
                # Work that was not accepted is referred to by Temporal's history alone.
                created.config["gc.auto"] = 0
                created.config["gc.pruneExpire"] = "never"
                created.free()
        return cls(path)

    # Reading

    @property
    def origin(self) -> RepositoryOrigin | None:
        """What was fetched into it; None where it was begun empty."""
        with suppress(FileNotFoundError):
            return RepositoryOrigin.model_validate_json((self.path / PINNED).read_bytes())
        return None

    def get_commit(self, commit: str) -> pygit2.Commit:
        """Raises CheckpointMissing."""
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
        """The content of a file at a commit, None if there is none."""
        try:
            blob = self.get_commit(commit).tree[path]
        except KeyError:
            return None
        return bytes(blob.data) if isinstance(blob, pygit2.Blob) else None

    def changed_paths(self, before: str, after: str) -> list[str]:
        """Paths at which two commits differ."""
        difference = self.get_commit(before).tree.diff_to_tree(self.get_commit(after).tree)
        return sorted({delta.new_file.path for delta in difference.deltas})

    # Between here and workspaces

    def put_into(self, files: Files, commit: str, folder: str) -> Files:
        """The files with the commit's tree in a folder, in place of what was there.

        Contents are copied unless the files' store borrows them from here.
        """
        return files.with_tree_entry(
            (folder,), TreeEntry(FOLDER, self.as_folder(files.store, commit))
        )

    def as_folder(self, store: ObjectStore, commit: str) -> bytes:
        """The id of a commit's tree as a folder of workspaces."""
        return self._as_folder(store, self.get_commit(commit).tree)

    def files_of(self, store: ObjectStore, tree: str) -> Files:
        """A tree of this repository as files of a job's."""
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
                name = entry_name(from_bytes(entry.raw_name or b""))
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
        """The id of a tree here with what is in a folder of a workspace and has a name for git.

        Args:
            files: The workspace.
            folder: Of it.
            since: Where the folder began: what is the same there is not read, and what a folder
                cannot hold, such as a submodule, stays.
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
        """A folder as a tree; `old_folder` is what the tree `old` was as a folder."""
        if old is not None and folder == old_folder:
            return old.id
        trial = self.git.TreeBuilder()
        written: dict[bytes, TreeEntry] = {}
        was = list_tree_entries(store, old_folder) if old is not None else {}
        now = list_tree_entries(store, folder)
        olds: dict[bytes, pygit2.Object] = {}
        for entry in old or ():
            name = entry_name(from_bytes(entry.raw_name or b""))
            olds[name] = entry
            if entry.filemode == FileMode.COMMIT and name not in now:
                written[entry.raw_name or b""] = TreeEntry(FileMode.COMMIT, entry.id.raw)
        for name, raw in now.items():
            before = olds.get(name)
            if before is not None and was.get(name) == raw:
                written[before.raw_name or b""] = TreeEntry(before.filemode, before.id.raw)
                continue
            plain = unescape_name(name)
            if is_git_folder(plain) or not git_accepts_name(trial, plain):
                continue
            if raw.mode == FOLDER:
                inner = before if isinstance(before, pygit2.Tree) else None
                old_inner = was[name].id if inner is not None and name in was else EMPTY_TREE
                below = self._as_tree(store, raw.id, old_inner, inner)
                # Git has no empty folders.
                if below.raw != EMPTY_TREE:
                    written[to_bytes(plain)] = TreeEntry(FOLDER, below.raw)
            else:
                blob = self.git.create_blob(store.read(raw.id))
                written[to_bytes(plain)] = TreeEntry(raw.mode, blob.raw)
        return self.git.odb.write(ObjectType.TREE, tree_data(written))

    # Writing

    def with_files(self, tree: str, files: Mapping[str, bytes | None]) -> str:
        """The id of a tree with these files at its top, or without those that are None."""
        builder = self.git.TreeBuilder(tree)
        for name, data in files.items():
            if data is not None:
                builder.insert(name, self.git.create_blob(data), FILE)
            elif builder.get(name) is not None:
                builder.remove(name)
        return str(builder.write())

    def with_added(
        self, tree: str, other: str, is_wanted: Callable[[str], bool]
    ) -> tuple[str, list[str]]:
        """A tree with the files that only another has and that are wanted, and their paths."""
        before, after = self._get_tree(tree), self._get_tree(other)
        added = [
            each.new_file
            for each in before.diff_to_tree(after).deltas
            if each.status == DeltaStatus.ADDED and is_wanted(each.new_file.path)
        ]
        index = pygit2.Index()
        index.read_tree(before)
        for file in added:
            index.add(pygit2.IndexEntry(file.path, file.id, file.mode))
        paths = sorted(file.path for file in added)
        return (str(index.write_tree(self.git)) if added else tree), paths

    def commit(self, tree: str, parents: list[str], message: str, timestamp: int) -> str:
        """A commit; the same arguments give the same one. It moves no branch."""
        who = pygit2.Signature("longhaul", EMAIL, timestamp, 0)
        ids = [pygit2.Oid(hex=parent) for parent in parents]
        commit_id = self.git.create_commit(None, who, who, message, pygit2.Oid(hex=tree), ids)
        return str(commit_id)

    def merge(self, head: str, commit: str, message: str, timestamp: int) -> tuple[str, list[str]]:
        """Both sides in one commit, and where they collide: a path each, and what is there.

        The commit holds both versions of these places: marked as git marks them in a text, of all
        else one with the other beside it.
        """
        ours, theirs = self.get_commit(head), self.get_commit(commit)
        base = self.git.merge_base(ours.id, theirs.id)
        if base == theirs.id:
            return head, []
        index = self.git.merge_commits(ours, theirs)
        conflicts = self._put_aside(index, ours)
        for ancestor, mine, other in list(index.conflicts or []):
            path = (mine or other or ancestor).path
            del index.conflicts[path]
            conflicts.append(f"{path}{self._settle_conflict(index, ancestor, mine, other)}")
        tree = str(index.write_tree(self.git))
        if not conflicts:
            if tree == self.tree_id(head):
                return head, []
            # One commit for each piece of work: how a job came to it is on the job's branch.
            return self.commit(tree, [head], message, timestamp), []
        # The side that is to be mended goes first: its story is the one that goes on.
        return self.commit(tree, [commit, head], "Both versions\n\n" + message, timestamp), sorted(
            conflicts
        )

    def _put_aside(self, index: Any, ours: pygit2.Commit) -> list[str]:
        """Put files beside where a folder is as well, as after a rename: git would drop them."""
        sides = [side for three in index.conflicts or [] for side in three[1:] if side]
        folders = {str(above) for entry in [*index, *sides] for above in Path(entry.path).parents}
        conflicts = []
        for entry in [
            each for each in index if each.path in folders and not _is_open_conflict(index, each)
        ]:
            mine = entry.path in ours.tree and isinstance(ours.tree[entry.path], pygit2.Blob)
            index.remove(entry.path)
            conflicts.append(f"{entry.path}{_instead_of_folder(index, entry, mine=mine)}")
        return conflicts

    def _settle_conflict(self, index: Any, ancestor: Any, mine: Any, other: Any) -> str:
        """Put what collides at one path into the index; in words, what is there now."""
        entry = mine or other
        if entry is None:
            return " (renamed by both sides)"
        if any(there.path.startswith(f"{entry.path}/") for there in index):
            return _instead_of_folder(index, entry, mine=mine is not None)
        if mine and other and (text := self._conflict_text(ancestor, mine, other)) is not None:
            entry = pygit2.IndexEntry(entry.path, self.git.create_blob(text.encode()), entry.mode)
        index.add(entry)
        if mine is None or other is None:
            whose = "what others had accepted" if mine else "yours"
            return f" (deleted or renamed on one side; what is there is {whose})"
        if entry is not mine:
            return ""
        beside = _free_path_beside(index, entry.path, "yours")
        index.add(pygit2.IndexEntry(beside, other.id, other.mode))
        return f" (what others had accepted; yours is {beside})"

    def _conflict_text(self, ancestor: Any, mine: Any, other: Any) -> str | None:
        """A file with both versions of what collides; None where it is no text."""
        # Where the version before was no text nothing is marked either. A zero byte beyond the
        # first 8,000 is no sign of that for git, yet what is marked would end there.
        for side in filter(None, (ancestor, mine, other)):
            blob = self.git[side.id]
            if not isinstance(blob, pygit2.Blob) or blob.is_binary or b"\0" in blob.data:
                return None
        if FileMode.LINK in (mine.mode, other.mode):
            return None
        try:
            return self.git.merge_file_from_index(ancestor, mine, other).contents
        except UnicodeDecodeError:
            return None

    def set_branch(self, branch: str, commit: str) -> None:
        """Put a branch at a commit, for people who look."""
        if not pygit2.reference_is_valid_name(f"refs/heads/{branch}"):
            return
        ref = self.path / "refs" / "heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path / f"draft-{secrets.token_hex(6)}"
        draft.write_text(f"{commit}\n")
        # Whole or not at all, and no lock that a killed worker could leave.
        try:
            draft.replace(ref)
            self.moved_branches[branch] = commit
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()


def _is_open_conflict(index: Any, entry: Any) -> bool:
    """Whether this is one side of a conflict that is not settled."""
    return index.conflicts is not None and entry.path in index.conflicts


def _instead_of_folder(index: Any, entry: Any, *, mine: bool) -> str:
    """Put a file beside the folder that has its name; in words, where it is."""
    beside = _free_path_beside(index, entry.path, "accepted" if mine else "yours")
    index.add(pygit2.IndexEntry(beside, entry.id, entry.mode))
    return f" (a folder on one side; the file of the other is {beside})"


def _free_path_beside(index: Any, path: str, whose: str) -> str:
    """A path for the version of a file that cannot be at its own."""
    beside = f"{path}~{whose}"
    while beside in index:
        beside += "~"
    return beside

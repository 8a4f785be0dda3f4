"""What `files`, `log` and `diff` show of a project: the main line of its repository."""

from __future__ import annotations

import difflib

import pygit2

from activities.checkpoints import CheckpointMissing, LogEntry, Root, RootError
from activities.projects.repository import MAIN, Repository, repository_path
from cli.output import Mistake
from engine.connection import workspaces_root

MOMENT = "a commit as `log` names it, or now"


class Project:
    """The repository of a project, below the workspaces root of this environment."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._git = repository.git

    def commit(self, moment: str) -> str:
        """The commit that a person named. Raises Mistake."""
        line = self.story()
        if moment == "now":
            return line[-1].id
        found = [told.id for told in line if len(moment) >= 4 and told.id.startswith(moment)]
        if len(found) != 1:
            raise Mistake(f"{moment!r} is no moment of a project: expected {MOMENT}")
        return found[0]

    def story(self) -> list[LogEntry]:
        """What was accepted, oldest first."""
        try:
            head = self._git.references[f"refs/heads/{MAIN}"].target
        except KeyError:
            raise Mistake("the project has accepted nothing yet") from None
        walker = self._git.walk(head)
        walker.simplify_first_parent()
        told = [
            LogEntry(str(each.id), each.commit_time, each.message, str(each.tree_id))
            for each in walker
        ]
        return told[::-1]

    def listing(self, commit: str, path: str) -> list[tuple[str, int]] | bytes:
        """Paths and sizes below a folder, or the content of a file. Raises Mistake."""
        tree: pygit2.Object = self._repository.commit_of(commit).tree
        if path := path.strip("/"):
            try:
                tree = self._repository.commit_of(commit).tree[path]
            except KeyError:
                raise Mistake(f"there is no {path} in the project") from None
        if isinstance(tree, pygit2.Blob):
            return bytes(tree.data)
        assert isinstance(tree, pygit2.Tree)
        return [(name, len(data)) for name, data in self._files(tree, path).items()]

    def changes(self, before: str, after: str, path: str) -> list[tuple[str, str]]:
        """Each path that differs, in order, and how."""
        old, new = (self._files(self._repository.commit_of(c).tree) for c in (before, after))
        wanted = [
            name
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
            and (not path or name == path or name.startswith(f"{path.rstrip('/')}/"))
        ]
        return [(name, _unified(name, old.get(name), new.get(name))) for name in wanted]

    def _files(self, tree: pygit2.Tree, below: str = "") -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for entry in tree:
            name = f"{below}/{entry.name}" if below else str(entry.name)
            if isinstance(entry, pygit2.Tree):
                found |= self._files(entry, name)
            elif isinstance(entry, pygit2.Blob):
                found[name] = bytes(entry.data)
        return found


def project_of(job_id: str) -> Project | None:
    """The project of that id, None if there is none."""
    try:
        root = Root.open(workspaces_root(), create=False)
        return Project(Repository(repository_path(root, job_id)))
    except (CheckpointMissing, RootError):
        return None


def _unified(name: str, old: bytes | None, new: bytes | None) -> str:
    try:
        left, right = ((data or b"").decode().splitlines() for data in (old, new))
    except UnicodeDecodeError:
        return f"{name}: binary"
    lines = difflib.unified_diff(left, right, f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines)

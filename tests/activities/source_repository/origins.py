"""Repositories of other people, as real ones on the disk."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from activities.source_repository.repository_bounds import RepositoryBounds

BOUNDS = RepositoryBounds(files=1000, bytes=1_000_000, file_bytes=100_000)
_WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class WorkTree:
    """A work tree that somebody is using."""

    path: Path

    @classmethod
    def create(cls, path: Path, **files: str) -> WorkTree:
        """Create it with one commit of these files; in names `__` means a slash, `_` a dot."""
        path.mkdir(parents=True)
        work_tree = cls(path)
        work_tree.git("init", "-q", "-b", "trunk")
        names = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
        work_tree.commit("One", names or {"tea.py": "def brew():\n    return 'tea'\n"})
        return work_tree

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    def commit(self, message: str, files: dict[str, str]) -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.head

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)


def git(folder: Path, *arguments: str) -> str:
    """Run a git command that must succeed and return its output."""
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        ["git", *_WHO, "-c", "protocol.file.allow=always", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def bare_clone(tree: WorkTree, path: Path) -> Path:
    """Make a bare repository like those on servers."""
    git(path.parent, "clone", "-q", "--bare", str(tree.path), str(path))
    return path

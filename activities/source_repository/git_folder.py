"""A git repository in a folder of people, read without git ever reading its configuration.

A repository's own configuration may name programs that git would run: hooks, filters, a file
monitor, helpers, transports. A folder may have been changed by anybody, a job's commands included.
So git works on a copy of its records with a configuration of ours, which borrows its objects.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pygit2

from activities.checkpoints.checkpoint_errors import RemoteUnavailable
from activities.checkpoints.git import run_git
from config.schema.agent import ConfigError

LOCAL = "file://"
_REF = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40})\s*")
_HARMLESS = frozenset(
    {
        *("core.autocrlf", "core.eol", "core.excludesfile", "core.filemode", "core.ignorecase"),
        *("core.precomposeunicode", "core.safecrlf", "core.sparsecheckout"),
        *("core.sparsecheckoutcone", "core.symlinks", "core.trustctime", "core.checkstat"),
        "index.sparse",
    }
)
"""Settings that say how files are compared with their content, and name no program."""
_RECORDS = ("index", "shallow", "info/exclude", "info/attributes", "info/sparse-checkout")
_RUNS_PROGRAMS = re.compile(
    r"include(if)?\..*|extensions\.partialclone|remote\..*\.promisor|core\.alternaterefscommand"
)
"""Settings with which even a push into the repository might start a program."""
_JUDGES = ("pre-receive", "update", "reference-transaction", "proc-receive")
"""Hooks that may refuse a push."""


@dataclass(frozen=True)
class GitFolder:
    git: Path
    """Its HEAD and index."""
    common: Path
    """Its refs, objects and configuration; those of the main one for a linked work tree."""
    top: Path | None
    """The work tree, if it has one."""
    source: str
    named: Sequence[str] = ()

    @classmethod
    def of_work_tree(cls, top: Path, source: str, named: Sequence[str]) -> GitFolder:
        """The repository of a folder that has a `.git`. Raises ConfigError."""
        mark = top / ".git"
        if mark.is_symlink() or not mark.is_dir():
            git, common = _follow_git_file(mark, source, named)
        else:
            git = common = mark
        folder = cls(git, common, top, source, named)
        folder._check_owner()
        return folder

    @classmethod
    def at_address(cls, address: str, named: Sequence[str]) -> GitFolder | None:
        """The repository of a `file://` address; None if there is none. Raises ConfigError."""
        place = Path(unquote(address.removeprefix(LOCAL)))
        for path in (place, place.with_name(f"{place.name}.git")):
            if (path / ".git").exists():
                return cls.of_work_tree(path, address, named)
            if (path / "HEAD").is_file() and (path / "objects").is_dir():
                folder = cls(path, path, None, address, named)
                folder._check_owner()
                return folder
        return None

    @property
    def git_settings(self) -> dict[str, str]:
        listed = [*self._list_settings("config"), *self._list_settings("config.worktree")]
        return {name.lower(): value for name, value in listed}

    def _list_settings(self, name: str) -> Iterator[tuple[str, str]]:
        path = self.git / name if name != "config" else self.common / name
        if _read_regular_file(path) is None:
            return
        listed = run_git(None, "config", "--file", str(path), "--no-includes", "-z", "--list")
        for row in filter(None, listed.split("\0")):
            name, _, value = row.partition("\n")
            yield name, value

    @property
    def is_partial(self) -> bool:
        """Whether it fetches missing objects from elsewhere, which nobody does for it here."""
        return any(
            name == "extensions.partialclone" or name.endswith(".promisor")
            for name in self.git_settings
        )

    @property
    def under_way(self) -> str:
        """What was begun in the work tree and not ended, such as a merge; else empty."""
        marks = {
            "MERGE_HEAD": "a merge",
            "rebase-merge": "a rebase",
            "rebase-apply": "a rebase",
            "CHERRY_PICK_HEAD": "a cherry-pick",
            "REVERT_HEAD": "a revert",
        }
        return next((what for name, what in marks.items() if (self.git / name).exists()), "")

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """Yield a bare repository with copies of its records, which borrows its objects."""
        objects = self._check_objects()
        with TemporaryDirectory(prefix="longhaul-git-") as place:
            copy = Path(place)
            repository = pygit2.init_repository(place, bare=True)
            settings = self._harmless_settings()
            if excludes := settings.pop("core.excludesfile", "") or _global_excludes_file():
                _copy_record(Path(excludes).expanduser(), copy / "excludes")
                settings["core.excludesfile"] = str(copy / "excludes")
            for name, value in settings.items():
                repository.config[name] = value
            repository.free()
            for name in _RECORDS:
                of = self.common if name in ("shallow", "info/exclude") else self.git
                _copy_record(of / name, copy / name)
            for shared in self.git.glob("sharedindex.*"):
                _copy_record(shared, copy / shared.name)
            head = _read_regular_file(self.git / "HEAD") or b""
            if _REF.fullmatch(head):
                (copy / "HEAD").write_bytes(head)
            _copy_record(self.common / "packed-refs", copy / "packed-refs")
            self._copy_loose_refs(copy)
            (copy / "objects" / "info" / "alternates").write_text(f"{objects}\n")
            yield copy

    def check_push(self) -> None:
        """Refuse a push that only a program of the folder could decide on."""
        settings = self.git_settings
        hooks = Path(settings.get("core.hookspath", ""))
        places = [self.common / "hooks", self.common / hooks, (self.top or self.git) / hooks]
        judges = [name for name in _JUDGES if any(os.access(p / name, os.X_OK) for p in places)]
        runs = [name for name in settings if _RUNS_PROGRAMS.fullmatch(name)]
        if judges or runs:
            what = f"hook {judges[0]}" if judges else f"setting {runs[0]}"
            raise ConfigError(
                f"its {what} names a program of that folder, and the worker runs none; publish "
                "by ssh:// or https://, where the server runs it, or to another repository"
            )

    def _harmless_settings(self) -> dict[str, str]:
        settings = self.git_settings
        if settings.get("extensions.objectformat", "sha1") != "sha1":
            raise ConfigError(
                f"repository {self.source}: its objects have SHA-256 ids, and only those with "
                "SHA-1 are read; convert it, or give a copy without .git"
            )
        if settings.get("extensions.refstorage", "files") != "files":
            raise ConfigError(
                f"repository {self.source}: its refs are not in files; "
                "`git refs migrate --ref-format=files` changes that"
            )
        return {name: value for name, value in settings.items() if name in _HARMLESS}

    def _copy_loose_refs(self, copy: Path) -> None:
        for folder, _, names in os.walk(self.common / "refs"):
            below = Path(folder).relative_to(self.common)
            if below.parts[:2] == ("refs", "replace"):
                continue
            for name in names:
                content = _read_regular_file(Path(folder) / name) or b""
                if _REF.fullmatch(content):
                    (copy / below).mkdir(parents=True, exist_ok=True)
                    (copy / below / name).write_bytes(content)

    def _check_owner(self) -> None:
        users = {os.geteuid()}
        if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdecimal():
            users.add(int(caller))
        for path in filter(None, (self.top, self.git, self.common)):
            if path.lstat().st_uid not in users and not is_below(path, self.named):
                raise ConfigError(
                    f"repository {self.source}: {path} belongs to another user, who decides what "
                    "is in it; if you trust that folder, name it in start.folders of the "
                    "worker's configuration"
                )

    def _check_objects(self) -> Path:
        inside = [str(self.common.resolve()), *self.named]
        objects = self.common / "objects"
        for place in (objects, *_alternates(objects), *_links_below(objects)):
            if not is_below(place, inside):
                raise ConfigError(
                    f"repository {self.source}: some of its objects are in {place.resolve()}, "
                    "outside of it; `git repack -a -d` and removing .git/objects/info/alternates "
                    "brings them in, or name that place in start.folders of the worker's "
                    "configuration"
                )
        return objects.resolve()


def is_below(path: Path, folders: Sequence[str]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(Path(folder).resolve()) for folder in folders)


def _alternates(objects: Path, depth: int = 5) -> Iterator[Path]:
    """Yield the other folders that objects are read from, as git follows them."""
    content = _read_regular_file(objects / "info" / "alternates") or b""
    for line in content.decode("utf-8", "surrogateescape").splitlines():
        if line and not line.startswith("#"):
            place = objects / line
            yield place
            if depth and place.is_dir():
                yield from _alternates(place, depth - 1)


def _links_below(objects: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(objects):
        for name in (*folders, *names):
            path = Path(folder, name)
            if path.is_symlink():
                yield path


def _follow_git_file(mark: Path, source: str, named: Sequence[str]) -> tuple[Path, Path]:
    """Return where a `.git` that is no folder leads; it must lead back, or anybody wrote it."""
    if mark.is_symlink():
        git = mark.resolve()
    else:
        content = (_read_regular_file(mark) or b"").decode("utf-8", "surrogateescape")
        git = (mark.parent / content.removeprefix("gitdir:").strip()).resolve()
    here, common = mark.parent.resolve(), git
    back = (_read_regular_file(git / "gitdir") or b"").decode("utf-8", "surrogateescape").strip()
    if back and git.parent.name == "worktrees" and Path(back).parent.resolve() == here:
        common = git.parent.parent
    elif not is_below(git, named) and not _is_module_of(git, here):
        raise ConfigError(
            f"repository {source}: its .git leads to {git}, which does not lead back to it; if "
            "you trust that place, name it in start.folders of the worker's configuration"
        )
    return git, common


def _is_module_of(git: Path, here: Path) -> bool:
    """Whether the repository says that its work tree is here, as that of a submodule does."""
    with suppress(RemoteUnavailable):
        place = run_git(
            None, "config", "--file", str(git / "config"), "--no-includes", "core.worktree"
        )
        return (git / place.strip()).resolve() == here
    return False


def _read_regular_file(path: Path) -> bytes | None:
    """Return a file's content; None for what is no file, links included."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(handle).st_mode) else None


def _copy_record(path: Path, target: Path) -> None:
    content = _read_regular_file(path)
    if content is None:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    # With the index's time git knows which files may have changed in the same moment.
    status = path.lstat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _global_excludes_file() -> str:
    """Return the file of patterns that this user of git never adds, such as those of an editor."""
    with suppress(RemoteUnavailable):
        return run_git(None, "config", "--global", "--type=path", "core.excludesFile").strip()
    return ""

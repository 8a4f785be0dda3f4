"""A folder as the start of a job: copied into a git repository without ignored files.

The top folder of a git work tree keeps its history. The job starts from its commit if nothing was
changed since, else from a new commit on top of it.
"""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2
from pygit2.enums import FileMode

from activities.checkpoints.checkpoint_errors import GitNotInstalled, RemoteUnavailable
from activities.checkpoints.entry_names import is_dot_git_name, name_from_bytes, name_to_bytes
from activities.checkpoints.git import run_git
from activities.checkpoints.journal_records import BLOB, COMMIT, TREE, JournalRecord
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.packfile import PackWriter
from activities.checkpoints.remote_files import fetch_remote_folder
from activities.checkpoints.sharded_tree import (
    EXECUTABLE,
    FILE,
    FOLDER,
    LINK,
    TreeEntry,
    encode_tree_shard,
)
from activities.projects.partial_history import carry_branch, restore_branch
from activities.projects.project_repository import EMAIL, MAIN, ProjectRepository
from activities.source_repository.git_folder import LOCAL, GitFolder
from activities.source_repository.repository_bounds import RepositoryBounds
from config.schema.agent import ConfigError
from protocol.repository_start import STAGED
from protocol.short_text import first_few, one_line

START = "refs/longhaul/start"
WHO = f"longhaul <{EMAIL}>"


def stage_folder(path: Path, staged: Path, bounds: RepositoryBounds) -> str:
    source = f"folder {path.name or path}"
    if not path.is_dir():
        why = "it is a file, and no folder" if path.exists() else "there is no such folder"
        raise ConfigError(f"repository folder {path}: {why}")
    if (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir():
        raise ConfigError(
            f"repository folder {path}: it is a bare repository; begin from its commits by url, "
            f"for example --repository {path.absolute().as_uri()}"
        )
    staged.mkdir(parents=True, exist_ok=True)
    draft = staged / f".{secrets.token_hex(6)}"
    try:
        repository = ProjectRepository.create(draft)
        if (path / ".git").exists():
            commit = _stage_folder_work_tree(path, repository, source, bounds)
        else:
            commit = _StagedFolderPack(path, repository, source, bounds).take()
        repository.set_branch(MAIN, commit)
        target = staged / f"repository-{commit}.git"
        with suppress(OSError):  # it was staged before
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return f"{STAGED}{target.name}/{path.name}"


def staged_folder_commit(name: str) -> str:
    if (match := re.fullmatch(r"repository-([0-9a-f]{40})\.git", name)) is None:
        raise ValueError(f"{name} is no staged folder")
    return match[1]


def carried_staged_folder(staged: Path) -> str:
    """Return the commit of a staged repository that a remote takes, maybe of a partial history."""
    commit = staged_folder_commit(staged.name)
    return carry_branch(ProjectRepository(staged), MAIN, commit, commit) or commit


def fetch_staged_folder(name: str, staged: Path, remote: str) -> bool:
    draft = staged / f".{secrets.token_hex(6)}"
    staged.mkdir(parents=True, exist_ok=True)
    try:
        repository = ProjectRepository.create(draft)
        tip = fetch_remote_folder(remote, name, draft)
        if tip is None:
            return False
        if tip != staged_folder_commit(name):
            tip = restore_branch(repository, MAIN, tip)
        # Opened anew, it knows which parents are missing.
        ProjectRepository(draft).set_branch(MAIN, tip)
        if tip != staged_folder_commit(name):
            return False
        with suppress(OSError):  # another attempt was faster
            draft.rename(staged / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _stage_folder_work_tree(
    path: Path, repository: ProjectRepository, source: str, bounds: RepositoryBounds
) -> str:
    """Return a commit of the work tree's current files, as git itself sees them."""
    work_tree = GitFolder.of_work_tree(path, source, bounds.named)
    with work_tree.copied() as copy:
        try:
            return _fetch_staged_work_tree(work_tree, copy, repository, bounds)
        except RemoteUnavailable as failed:
            raise ConfigError(f"repository {source}: {failed}{_partial_hint(work_tree)}") from None


def _fetch_staged_work_tree(
    work_tree: GitFolder, copy: Path, repository: ProjectRepository, bounds: RepositoryBounds
) -> str:
    assert work_tree.top is not None

    def ask(*arguments: str, stdin: bytes | None = None) -> str:
        about = (
            "--git-dir",
            str(copy),
            "--work-tree",
            str(work_tree.top),
            "-C",
            str(work_tree.top),
        )
        return run_git(None, *about, *arguments, stdin=stdin, errors="surrogateescape")

    parent = _checked_out_commit(copy, work_tree.source)
    listed = ask("ls-files", "-z", "--others", "--modified", "--exclude-standard")
    names = sorted(set(listed.split("\0")) - {""})
    _check_staged_folder_size(work_tree.top, names, work_tree.source, bounds)
    # `git add` would look into repositories within, by their own configuration.
    added = [
        each
        for each in names
        if not each.endswith("/") or _staged_submodule_entry(work_tree.top / each) is not None
    ]
    paths = b"".join(os.fsencode(each.rstrip("/")) + b"\0" for each in added)
    ask("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=paths)
    tree = ask("write-tree").strip()
    if tree == EMPTY_TREE.hex():
        raise ConfigError(_empty_staged_folder_error(work_tree.source))
    commit = parent or ""
    if not parent or ask("rev-parse", f"{parent}^{{tree}}").strip() != tree:
        commit = _commit_work_tree(work_tree, copy, parent, tree)
    # Git would not write what the repository has already, so all objects come by a fetch.
    run_git(copy, "update-ref", "--no-deref", START, commit)
    _fetch_staged_commit(
        copy, repository, deepest=not work_tree.is_partial, depth=2 if parent else 1
    )
    return str(repository.get_commit(commit).id)


def _commit_work_tree(work_tree: GitFolder, copy: Path, parent: str | None, tree: str) -> str:
    """Write a commit of the tree into the copy. The same files give the same commit."""
    assert work_tree.top is not None
    when = run_git(copy, "show", "-s", "--format=%ct", parent).strip() if parent else "0"
    amid = f", amid {work_tree.under_way}" if work_tree.under_way else ""
    message = f"{'Uncommitted changes' if parent else 'Files'} of {work_tree.top.name}{amid}\n"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
    lines += [f"{role} {WHO} {when} +0000" for role in ("author", "committer")]
    data = "\n".join(lines).encode() + b"\n\n" + name_to_bytes(message)
    return run_git(copy, "hash-object", "-t", "commit", "-w", "--stdin", stdin=data).strip()


def _checked_out_commit(copy: Path, source: str) -> str | None:
    """Return the commit that HEAD names, None before the first. Raises ConfigError."""
    with suppress(RemoteUnavailable):
        run_git(copy, "rev-parse", "--verify", "--quiet", "HEAD")
        return run_git(copy, "rev-parse", "--verify", "HEAD^{commit}").strip()
    head = (copy / "HEAD").read_text().strip()
    refs = run_git(copy, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    if not head.startswith("ref: ") or head.removeprefix("ref: refs/heads/") in refs:
        raise ConfigError(
            f"repository {source}: the commit that is checked out ({one_line(head, 100)}) is "
            "missing or damaged; `git fsck` says more"
        )
    if refs:
        raise ConfigError(
            f"repository {source}: HEAD names the branch "
            f"{one_line(head.removeprefix('ref: refs/heads/'), 100)}, which does not exist; it "
            f"has {first_few(refs, 10)}: check one out, or commit"
        )
    return None


def _fetch_staged_commit(
    copy: Path, repository: ProjectRepository, *, deepest: bool, depth: int
) -> None:
    """Fetch the commit with its history, or with its newest part where the rest is not there."""
    fetch = ("fetch", "--quiet", "--no-tags", "--update-shallow", "--no-write-fetch-head")
    about = (f"{LOCAL}{copy}", f"+{START}:refs/heads/{MAIN}")
    try:
        run_git(repository.path, *fetch, *about)
    except RemoteUnavailable:
        if deepest:
            raise
        run_git(repository.path, *fetch, f"--depth={depth}", *about)


def _partial_hint(work_tree: GitFolder) -> str:
    return (
        "; it is a partial clone, and nothing is fetched for it here: `git fetch --refetch "
        "--no-filter` brings what is missing"
        if work_tree.is_partial
        else ""
    )


def _check_staged_folder_size(
    path: Path, names: list[str], source: str, bounds: RepositoryBounds
) -> None:
    """Raise ConfigError if the files exceed the limits, before git reads them."""
    total = 0
    for count, name in enumerate(names, 1):
        with suppress(OSError):  # it was deleted, or its name is not UTF-8
            size = (path / name).lstat().st_size
            bounds.check_file(source, name, size)
            total += size
        bounds.check_files(source, count)
        bounds.check_bytes(source, total, "its files have")


def _empty_staged_folder_error(source: str) -> str:
    return f"repository {source}: there is no file in it, or .gitignore names them all"


class _StagedFolderPack:
    def __init__(
        self, path: Path, repository: ProjectRepository, source: str, bounds: RepositoryBounds
    ) -> None:
        self._path, self._source, self._bounds = path, source, bounds
        self._writer = PackWriter(repository.path / "objects")
        self._count = self._bytes = 0
        self._newest = 0
        self._listed: set[str] | None = None

    def take(self) -> str:
        with _open_staging_ignore_rules(self._path, self._source, self._bounds) as (reader, prefix):
            self._reader, self._prefix = reader, prefix
            try:
                self._listed = _list_staged_files(self._path, reader, prefix)
            except GitNotInstalled:
                self._listed = None
            except RemoteUnavailable as failed:
                raise ConfigError(f"repository {self._source}: {failed}") from None
            tree = self._write_folder(self._path, "")
        if tree == EMPTY_TREE:
            self._writer.discard()
            raise ConfigError(_empty_staged_folder_error(self._source))
        lines = [f"tree {tree.hex()}"]
        lines += [f"{role} {WHO} {self._newest} +0000" for role in ("author", "committer")]
        message = name_to_bytes(f"Files of {self._path.name}\n")
        commit = self._add_object(COMMIT, "\n".join(lines).encode() + b"\n\n" + message)
        self._writer.finish()
        return commit.hex()

    def _write_folder(self, folder: Path, above: str) -> bytes:
        entries: dict[bytes, TreeEntry] = {}
        try:
            listing = list(os.scandir(os.fsencode(folder)))
        except OSError as error:
            raise ConfigError(f"repository {self._source}: {error}") from None
        for item in listing:
            name = name_from_bytes(item.name)
            if (
                not is_dot_git_name(name)
                and (entry := self._write_entry(item, f"{above}{name}")) is not None
            ):
                entries[item.name] = entry
        return self._add_object(TREE, encode_tree_shard(entries)) if entries else EMPTY_TREE

    def _write_entry(self, item: os.DirEntry[bytes], path: str) -> TreeEntry | None:
        place = Path(os.fsdecode(item.path))
        if item.is_dir(follow_symlinks=False):
            if self._is_ignored(f"{path}/"):
                return None
            if (place / ".git").exists():
                return _staged_submodule_entry(place)
            tree = self._write_folder(place, f"{path}/")
            return None if tree == EMPTY_TREE else TreeEntry(FOLDER, tree)
        if self._is_ignored(path):
            return None
        status = item.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            # Keep the target exactly; `Path` would normalise it.
            return TreeEntry(LINK, self._add_object(BLOB, os.readlink(item.path)))  # noqa: PTH115
        if not stat.S_ISREG(status.st_mode):
            return None
        self._count += 1
        self._bytes += status.st_size
        self._newest = max(self._newest, int(status.st_mtime))
        self._bounds.check_files(self._source, self._count)
        self._bounds.check_file(self._source, path, status.st_size)
        self._bounds.check_bytes(self._source, self._bytes, "its files have")
        try:
            data = place.read_bytes()
        except OSError as error:
            raise ConfigError(f"repository {self._source}: {error}") from None
        mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE
        return TreeEntry(mode, self._add_object(BLOB, data))

    def _add_object(self, kind: int, data: bytes) -> bytes:
        record = JournalRecord.create(kind, data)
        self._writer.add(record)
        return record.id

    def _is_ignored(self, path: str) -> bool:
        if self._listed is not None:
            return path not in self._listed
        try:
            return bool(self._reader.path_is_ignored(f"{self._prefix}{path}"))
        except (ValueError, UnicodeError, pygit2.GitError):
            return False  # libgit2 cannot check such a name


def _staged_submodule_entry(place: Path) -> TreeEntry | None:
    """Return a repository of its own as git adds one; None if nothing is committed there."""
    try:
        head = pygit2.Repository(str(place)).head
    except (pygit2.GitError, KeyError, ValueError):
        return None
    return TreeEntry(FileMode.COMMIT, bytes.fromhex(str(head.target)))


def _list_staged_files(path: Path, reader: pygit2.Repository, prefix: str) -> set[str]:
    """Return the files that are not ignored, and the folders on the way to them with a slash.

    libgit2 overlooks a pattern with `!` that takes back one of another folder's `.gitignore`, so
    git itself says what is ignored. Raises GitNotInstalled, RemoteUnavailable: as for `run_git`.
    """
    listed = run_git(
        None,
        *("-C", str(path.absolute()), "--git-dir", reader.path, "--work-tree", reader.workdir),
        *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        errors="surrogateescape",
    )
    names = set(listed.split("\0")) - {""}
    parents = {
        f"{'/'.join(parts[:depth])}/"
        for parts in (name.rstrip("/").split("/") for name in names)
        for depth in range(1, len(parts))
    }
    # A repository within is listed with a slash, a submodule of the work tree without.
    modules = {f"{name}/" for name in names if prefix and (path / name / ".git").exists()}
    return names | parents | modules


@contextmanager
def _open_staging_ignore_rules(
    path: Path, source: str, bounds: RepositoryBounds
) -> Iterator[tuple[pygit2.Repository, str]]:
    """Yield a repository that evaluates the folder's `.gitignore` files, and the prefix for its
    paths.

    In a work tree the files above the folder apply too, unless they ignore the folder itself.
    """
    real = path.resolve()
    top = next((above for above in real.parents if (above / ".git").exists()), None)
    with ExitStack() as stack:
        if top:
            with suppress(GitNotInstalled):
                work_tree = GitFolder.of_work_tree(top, source, bounds.named)
                reader = _as_work_tree(stack.enter_context(work_tree.copied()), top)
                prefix = f"{real.relative_to(top)}/"
                if not reader.path_is_ignored(prefix):
                    yield reader, prefix
                    return
        place = Path(stack.enter_context(TemporaryDirectory()))
        pygit2.init_repository(str(place), bare=True).free()
        yield _as_work_tree(place, path.absolute()), ""


def _as_work_tree(repository: Path, top: Path) -> pygit2.Repository:
    bare = pygit2.Repository(str(repository))
    bare.config["core.bare"] = False
    bare.config["core.worktree"] = str(top)
    return pygit2.Repository(str(repository))

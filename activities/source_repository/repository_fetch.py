"""Fetches the repository of a job or project once and pins its commit."""

import difflib
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pygit2
from temporalio.exceptions import ApplicationError

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root
from activities.checkpoints.disk_access import replace_file
from activities.checkpoints.locks import file_lock
from activities.checkpoints.remote_fetch import install_fetched_packs
from activities.projects.agents_md import read_agents_md
from activities.projects.project_repository import (
    MAIN,
    PINNED,
    ProjectRepository,
    project_repository_path,
)
from activities.runtime.failures import may_retry_activity, typed_failure
from activities.source_repository.git_folder import LOCAL, GitFolder
from activities.source_repository.remote_git import run_remote_git
from activities.source_repository.repository_bounds import RepositoryBounds, repository_folder_bytes
from activities.source_repository.staged_folder import (
    START,
    fetch_staged_folder,
    stage_folder,
    staged_folder_commit,
)
from activities.source_repository.tree_survey import survey_tree
from config.schema.agent import ConfigError
from protocol.git_address import git_address_without_user
from protocol.repository_link import RepositoryOrigin
from protocol.repository_start import STAGED, RepositoryStart
from protocol.short_text import as_sentence, first_few

LOCK_SECONDS = 60
MOST_NAMED = 10
_NO_REF = re.compile(r"couldn't find remote ref|no such ref", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WRONG = re.compile(
    r"couldn't find remote ref|does not appear to be a git repository|not our ref|"
    r"repository '.*' not found|no such (file or directory|ref)|unadvertised object",
    re.IGNORECASE,
)
"""Messages of git for errors that another attempt would meet again."""


def fetch_pinned_repository(
    root: Root, owner: str, start: RepositoryStart, bounds: RepositoryBounds, remote: str = ""
) -> RepositoryOrigin:
    """Fetch the repository into the job's or project's own git repository, unless it is there
    already.

    The next attempt removes the draft of a killed one. The pinned commit stays, even if the branch
    moves.

    Args:
        remote: Where a staged folder is fetched from that is not here; empty for nowhere.

    Raises ConfigError, ApplicationError, OSError.
    """
    repository = ProjectRepository.create(project_repository_path(root, owner))
    path = repository.path
    if (pinned := repository.origin) is not None:
        return pinned
    with file_lock(path / "longhaul-fetch.lock", seconds=LOCK_SECONDS):
        if (pinned := repository.origin) is not None:
            return pinned
        for leftover in path.glob("incoming-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        draft = path / f"incoming-{secrets.token_hex(6)}"
        try:
            origin = _fetch_repository_draft(root, start, bounds, draft, path, remote)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        replace_file(path / PINNED, origin.model_dump_json())
        return origin


def _fetch_repository_draft(
    root: Root,
    start: RepositoryStart,
    bounds: RepositoryBounds,
    draft: Path,
    path: Path,
    remote: str,
) -> RepositoryOrigin:
    if start.folder:
        source = f"folder {Path(start.folder).name}"
        address = _fetched_folder_address(root, start, bounds, remote)
    else:
        source, address = git_address_without_user(start.url), start.url
    pygit2.init_repository(str(draft), bare=True).free()

    def watch() -> None:
        bounds.check_bytes(source, repository_folder_bytes(draft), "what git sends has")

    with _readable_address(root, address, source, bounds) as (readable, is_partial):
        _fetch_into(draft, readable, start, source, watch, is_partial=is_partial)
    drafted = pygit2.Repository(str(draft))
    try:
        commit = drafted.lookup_reference(START).peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError):
        raise ConfigError(f"repository {source}: {start.ref} is no commit") from None
    survey = survey_tree(drafted, commit.tree, source, bounds)
    if start.subfolder and not _is_fetched_folder(commit.tree, start.subfolder):
        raise ConfigError(
            f"repository {source}: there is no folder {start.subfolder} at {commit.id}"
        )
    guidance, notes = read_agents_md(commit.tree, start.subfolder)
    shallow = draft / "shallow"
    if shallow.exists():
        replace_file(path / "shallow", shallow.read_text())
        survey.is_cut = start.depth is None
    install_fetched_packs(draft, path)
    replace_file(path / START, f"{commit.id}\n")
    ProjectRepository(path).set_branch(MAIN, str(commit.id))
    return RepositoryOrigin(
        source=source,
        start=start,
        commit=str(commit.id),
        file_count=survey.file_count,
        guidance=guidance,
        notes=[*survey.notes, *notes],
    )


@contextmanager
def _readable_address(
    root: Root, address: str, source: str, bounds: RepositoryBounds
) -> Iterator[tuple[str, bool]]:
    """Yield where git fetches from (a copy that names no program), and whether it lacks objects."""
    if not address.startswith(LOCAL):
        yield address, False
        return
    local = GitFolder.at_address(address, [*bounds.named, str(root.staged)])
    if local is None:
        raise ConfigError(f"repository {source}: it does not appear to be a git repository")
    with local.copied() as copy:
        yield f"{LOCAL}{copy}", local.is_partial


def _fetch_into(
    draft: Path,
    address: str,
    start: RepositoryStart,
    source: str,
    watch: Callable[[], None],
    *,
    is_partial: bool = False,
) -> None:
    depth = [f"--depth={start.depth}"] if start.depth else []
    quiet = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
    quiet += ["--update-shallow"]
    fetch = partial(run_remote_git, draft, address, start.token_variable, *quiet, watch=watch)
    try:
        try:
            fetch(*depth, address, f"+{start.ref or 'HEAD'}:{START}")
        except RemoteUnavailable:
            if is_partial and not depth:
                start = start.model_copy(update={"depth": 1})
                return _fetch_into(draft, address, start, source, watch)
            if not _COMMIT.fullmatch(start.ref or ""):
                raise
            # Some servers refuse to send a commit by id, although it is in a branch.
            every = ["+refs/heads/*:refs/longhaul/heads/*", "+refs/tags/*:refs/longhaul/tags/*"]
            fetch(address, *every)
            if str(start.ref) not in pygit2.Repository(str(draft)):
                raise ConfigError(
                    f"repository {source}: no branch or tag of it has the commit {start.ref}"
                ) from None
            replace_file(draft / START, f"{start.ref}\n")
    except RemoteUnavailable as error:
        if _NO_REF.search(str(error)):
            raise ConfigError(
                f"repository {source}: {_missing_repository_ref(address, start)}"
            ) from None
        if _WRONG.search(str(error)):
            raise ConfigError(f"repository {source}: {error}") from None
        raise _repository_fetch_failure(source, error) from error
    except GitNotInstalled as error:
        raise _repository_fetch_failure(source, error) from error


def _missing_repository_ref(address: str, start: RepositoryStart) -> str:
    ref = str(start.ref or "")
    if re.fullmatch(r"[0-9a-f]{4,39}", ref):
        return f"there is no branch or tag {ref}; a commit is named by all 40 digits of its id"
    try:
        command = ["ls-remote", "--heads", "--tags", "--refs", address]
        listed = run_remote_git(None, address, start.token_variable, *command, seconds=60)
    except RemoteUnavailable:
        return f"there is no branch or tag {ref}"
    names = [line.partition("\t")[2].split("/", 2)[-1] for line in listed.splitlines()]
    if not ref:
        return _without_head(names)
    close = difflib.get_close_matches(ref, names, 3)
    others = [*close, *(name for name in names if name not in close)]
    return f"there is no branch or tag {ref}; it has {first_few(others, MOST_NAMED) or 'none'}"


def _without_head(names: list[str]) -> str:
    if not names:
        return "it is empty; commit something first, or give a folder instead"
    return (
        "its HEAD names no branch that exists; name one with `ref` (--ref): it has "
        f"{first_few(names, MOST_NAMED)}"
    )


def _repository_fetch_failure(source: str, why: Exception) -> ApplicationError:
    return typed_failure(
        "Dependency",
        as_sentence(f"The repository {source} cannot be fetched: {why}"),
        retry=may_retry_activity(),
    )


def _fetched_folder_address(
    root: Root, start: RepositoryStart, bounds: RepositoryBounds, remote: str
) -> str:
    name = start.folder
    if not name.startswith(STAGED):
        path = Path(name)
        if not path.is_absolute():
            raise ConfigError(
                f"repository folder {name}: expected an absolute path of the worker's"
            )
        name = stage_folder(path, root.staged, bounds)
    first = name.removeprefix(STAGED).partition("/")[0]
    staged = root.staged / first
    try:
        staged_folder_commit(first)
    except ValueError:
        raise ConfigError(f"repository folder {name}: not a staged folder") from None
    try:
        is_here = staged.is_dir() or bool(
            remote and fetch_staged_folder(first, root.staged, remote)
        )
    except (RemoteUnavailable, GitNotInstalled) as error:
        raise _repository_fetch_failure(f"folder {Path(name).name}", error) from error
    if not is_here:
        raise ConfigError(
            f"repository folder {name}: not below the worker's workspaces root {root.path}; start "
            "it where LONGHAUL_WORKSPACES names that folder"
        )
    return staged.absolute().as_uri()


def _is_fetched_folder(tree: pygit2.Tree, path: str) -> bool:
    try:
        return isinstance(tree[path], pygit2.Tree)
    except KeyError:
        return False

"""A project's repository in a remote: fetched if commits are missing here, pushed after each step.

Its area in the remote is `projects/<project>/`, with these refs:

    heads/<branch>    as in the repository
    carried/<branch>  instead of it where the history was fetched in part: a commit that carries it
    owner/<run id>    first run of the project's workflow
    begin/<commit>    a commit with the files that record what was fetched into the repository
"""

from pathlib import Path

import pygit2

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root, job_folder_name
from activities.checkpoints.checkpoint_errors import RemoteUnfit
from activities.checkpoints.forgotten_records import refuse_forgotten_job
from activities.checkpoints.remote import open_remote, remote_checkpoint_area
from activities.checkpoints.remote_fetch import fetch_remote_packs, refuse_forgotten_refs
from activities.checkpoints.repository_owner import OwnerMark, read_owner, record_owner
from activities.projects.partial_history import SHALLOW, carry_branch, restore_branch
from activities.projects.project_repository import (
    MAIN,
    PINNED,
    ProjectRepository,
    project_repository_path,
)
from activities.runtime.failures import may_retry_activity, typed_failure
from config.schema.agent import AgentConfig, ConfigError
from protocol.git_address import git_address_without_user
from protocol.handoffs import ProjectLink
from protocol.short_text import as_sentence

_BEGIN = "begin/"


def project_remote_area(project: str) -> str:
    """Return the area of a project's refs."""
    return f"projects/{remote_checkpoint_area(project).partition('/')[2]}"


def check_remote_project_owner(remote: str, project: str, chain: str) -> None:
    """Refuse a project if the remote has another one with its id.

    Raises:
        ConfigError: The remote has another project with this id.
        ApplicationError: The remote cannot be used.
    """
    try:
        open_remote(remote).check_promises()
        owners = open_remote(remote).list_refs(project_remote_area(project), "owner")
    except RemoteUnfit as error:
        raise ConfigError(f"workspace.remote {git_address_without_user(remote)}: {error}") from None
    except (GitNotInstalled, RemoteUnavailable) as error:
        raise _project_remote_failure(remote, error) from error
    if owners and owners[0] != f"owner/{chain}":
        raise ConfigError(
            f"a project with the id {project} is already in the remote "
            f"{git_address_without_user(remote)}; "
            "start this one under another id"
        )


def open_remote_project(root: Root, project: str, remote: str, *commits: str) -> ProjectRepository:
    """Open the project's repository, fetching these commits if they are missing.

    Raises:
        CheckpointMissing: There is no repository, and no remote.
        ApplicationError: The remote cannot be used.
    """
    try:
        return fetch_project_commits(root, project, remote, *commits)
    except (GitNotInstalled, RemoteUnavailable) as error:
        raise _project_remote_failure(remote, error) from error


def fetch_project_commits(
    root: Root, project: str, remote: str, *commits: str
) -> ProjectRepository:
    """Like `open_remote_project`, outside activities.

    Raises:
        CheckpointMissing: There is no repository, and no remote.
        RemoteUnavailable, GitNotInstalled: A commit is missing, and the remote cannot be used.
    """
    path = project_repository_path(root, project)
    if not remote or _project_has_all_commits(path, commits):
        return ProjectRepository(path)
    refuse_forgotten_job(root.path, project)
    repository = ProjectRepository.create(path)
    refs = fetch_remote_packs(open_remote(remote), project_remote_area(project), path)
    refuse_forgotten_refs(refs, project, remote)
    for name, commit in refs.items():
        kind, _, rest = name.partition("/")
        if kind == "heads":
            repository.set_branch(rest, commit)
        elif kind == "carried":
            tip = restore_branch(repository, rest, commit)
            # Opened anew, it knows which parents are missing.
            ProjectRepository(path).set_branch(rest, tip)
        elif kind == "owner" and read_owner(path) is None:
            record_owner(path, OwnerMark(chain=rest, job=project, remote=remote))
        elif kind == "begin":
            _restore_remote_project_files(ProjectRepository(path), commit)
    return ProjectRepository(path)


def open_linked_remote_project(root: Root, link: ProjectLink) -> ProjectRepository:
    """Open the repository of the project that a job works for."""
    inputs = link.handoff.inputs
    needed = filter(None, (inputs.commit, inputs.state, inputs.base))
    return open_remote_project(root, link.id, link.remote, *needed)


def push_project(repository: ProjectRepository, project: str, remote: str) -> None:
    """Push the branches moved through this handle, with the owner and the record of what was
    fetched.

    Other branches are not pushed: the remote may have newer commits of them.

    Raises:
        ApplicationError: The remote cannot be used.
    """
    if not remote:
        return
    moved = dict(_branch_ref(repository, *each) for each in repository.moved_branches.items())
    if not moved:
        return
    new: dict[str, str] = {}
    if owner := read_owner(repository.path):
        new[f"owner/{owner.chain}"] = next(iter(moved.values()))
    if begin := _commit_remote_project_files(repository):
        new[f"{_BEGIN}{begin}"] = begin
    try:
        open_remote(remote).push_refs(
            project_remote_area(project), repository.path, None, moved, new
        )
    except (GitNotInstalled, RemoteUnavailable) as error:
        raise _project_remote_failure(remote, error) from error


def push_start_to_project_remote(repository: ProjectRepository, job: str, remote: str) -> None:
    """Push what a job began from, so that another host has the same commits.

    Raises:
        ApplicationError: The remote cannot be used.
    """
    origin = repository.origin
    if origin is not None:
        repository.moved_branches[MAIN] = origin.commit
        push_project(repository, job, remote)


def _project_has_all_commits(path: Path, commits: tuple[str, ...]) -> bool:
    try:
        git = pygit2.Repository(str(path))
    except (pygit2.GitError, KeyError):
        return False
    present = all(commit in git for commit in commits)
    git.free()
    return present


def _commit_remote_project_files(repository: ProjectRepository) -> str:
    """Commit the files that record what was fetched; return "" for a project that began empty."""
    if (origin := repository.origin) is None:
        return ""
    names = [name for name in (PINNED, SHALLOW) if (repository.path / name).exists()]
    files = {name: (repository.path / name).read_bytes() for name in names}
    tree = repository.with_files(str(repository.git.TreeBuilder().write()), files)
    # A server refuses a commit on top of a history that it has only in part.
    parents = [] if SHALLOW in files else [origin.commit]
    return repository.commit(tree, parents, "What the project began from", 0)


def _branch_ref(repository: ProjectRepository, name: str, commit: str) -> tuple[str, str]:
    """Return the ref and the commit that have a branch in the remote."""
    origin = repository.origin
    if origin and (carrier := carry_branch(repository, name, commit, origin.commit)):
        return f"carried/{name}", carrier
    return f"heads/{name}", commit


def _restore_remote_project_files(repository: ProjectRepository, commit: str) -> None:
    # Write the record last: it confirms that everything else is here.
    for name in (SHALLOW, PINNED):
        place = repository.path / name
        data = repository.read_file(commit, name)
        if data is not None and not place.exists():
            draft = place.with_name(f"draft-{job_folder_name(commit)}")
            draft.write_bytes(data)
            draft.replace(place)


def _project_remote_failure(remote: str, why: Exception) -> Exception:
    return typed_failure(
        "Dependency",
        as_sentence(
            "The project's repository cannot be kept in the remote "
            f"{git_address_without_user(remote)}: {why}"
        ),
        retry=may_retry_activity(),
        outage=True,
    )


def shared_project_remote(agents: list[AgentConfig]) -> str:
    """Return the remote that all agents of a project share. Raises ConfigError if they differ."""
    remotes = {config.workspace.remote or "" for config in agents}
    if len(remotes) > 1:
        raise ConfigError(
            "workspace.remote: the agents of a project share one remote; set it for all of them, "
            "in the project's `set` or in defaults.yaml"
        )
    return remotes.pop() if remotes else ""

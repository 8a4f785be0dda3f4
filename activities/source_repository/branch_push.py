"""Pushes a branch once: never by force, and not again if the remote already has the commit."""

from __future__ import annotations

import pygit2

from activities.checkpoints import GitNotInstalled, RemoteUnavailable
from activities.projects.project_repository import ProjectRepository
from activities.runtime.failures import may_retry_activity, typed_failure
from activities.source_repository.remote_git import run_remote_git
from protocol.git_address import git_address_without_user
from protocol.publishing import Publish
from protocol.short_text import as_sentence

LOOK_SECONDS = 60


def push_branch(repository: ProjectRepository, publish: Publish, commit: str) -> str:
    """Push the commit to the remote's branch; return the address as shown to people.

    If an earlier attempt was killed after its push, the branch already ends at this commit.

    Raises:
        ApplicationError: `BranchMoved` if the branch has commits that the work lacks; `Dependency`
            if the remote cannot be reached or refuses.
        ConfigError: The worker lacks the variable with the token.
    """
    shown = git_address_without_user(publish.remote)
    try:
        if _remote_branch_tip(publish) == commit:
            return shown
        _check_fast_forward(repository, publish, commit)
        ref = f"{commit}:refs/heads/{publish.branch}"
        arguments = ["push", "--porcelain", "--no-verify", publish.remote, ref]
        try:
            run_remote_git(repository.path, publish.remote, publish.token_variable, *arguments)
        except RemoteUnavailable:
            # Perhaps only the answer was lost, or somebody else pushed first.
            if _remote_branch_tip(publish) == commit:
                return shown
            _check_fast_forward(repository, publish, commit)
            raise
    except (RemoteUnavailable, GitNotInstalled) as error:
        raise typed_failure(
            "Dependency",
            as_sentence(f"The branch {publish.branch} cannot be pushed to {shown}: {error}"),
            retry=may_retry_activity(),
        ) from error
    return shown


def _remote_branch_tip(publish: Publish) -> str | None:
    """Return the last commit of the remote's branch; None if there is no such branch."""
    ref = f"refs/heads/{publish.branch}"
    listed = run_remote_git(
        None, publish.remote, publish.token_variable, "ls-remote", publish.remote, ref,
        seconds=LOOK_SECONDS,
    )  # fmt: skip
    rows = (line.partition("\t") for line in listed.splitlines())
    return next((tip for tip, _, name in rows if name == ref), None)


def _check_fast_forward(repository: ProjectRepository, publish: Publish, commit: str) -> None:
    """Raise BranchMoved if the push would not be a fast-forward."""
    tip = _remote_branch_tip(publish)
    if tip is None or _is_published_ancestor(repository.git, tip, commit):
        return
    raise typed_failure(
        "BranchMoved",
        f"The branch {publish.branch} at {git_address_without_user(publish.remote)} stands at "
        f"{tip[:12]}, "
        f"which the work ({commit[:12]}) is not built on. Nothing was pushed.",
    )


def _is_published_ancestor(repository: pygit2.Repository, tip: str, commit: str) -> bool:
    if tip not in repository:
        return False
    return repository.descendant_of(commit, tip)

"""Pushes a branch once: never by force, and not again if the remote already has the commit."""

import re
from collections.abc import Sequence

from temporalio.exceptions import ApplicationError

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root
from activities.projects.project_repository import ProjectRepository
from activities.runtime.failures import may_retry_activity, typed_failure
from activities.source_repository.git_folder import LOCAL, GitFolder
from activities.source_repository.remote_git import run_remote_git
from config.schema.agent import ConfigError
from config.schema.start import StartRights
from config.start_settings import check_start_places
from protocol.git_address import git_address_without_user
from protocol.publishing import Publish
from protocol.short_text import as_sentence, one_line

LOOK_SECONDS = 60
_REFUSED = re.compile(r"^!\t[^\t]*\t(\[remote rejected\].*)$", re.MULTILINE)


def check_push_place(root: Root, rights: StartRights, publish: Publish) -> None:
    """Refuse with `PublishRefused` an address that the configuration does not leave to starts."""
    try:
        check_start_places(rights, None, publish, root.staged.parent)
    except ConfigError as refusal:
        raise typed_failure("PublishRefused", as_sentence(str(refusal))) from None


def push_branch(
    repository: ProjectRepository, publish: Publish, commit: str, named: Sequence[str] = ()
) -> str:
    """Push the commit to the remote's branch; return the address as shown to people.

    If an earlier attempt was killed after its push, the branch already ends at this commit.

    Args:
        named: Folders of the worker that its configuration trusts.

    Raises:
        ApplicationError: `BranchMoved` if the branch has commits that the work lacks;
            `PublishRefused` if the remote refuses the branch; `Dependency` if it cannot be reached.
        ConfigError: The worker lacks the variable with the token.
    """
    shown = git_address_without_user(publish.remote)
    try:
        _check_local_remote(publish, named)
        if _remote_branch_tip(publish) == commit:
            return shown
        _check_fast_forward(repository, publish, commit)
        ref = f"{commit}:refs/heads/{publish.branch}"
        arguments = ["push", "--porcelain", "--no-verify", publish.remote, ref]
        try:
            run_remote_git(repository.path, publish.remote, publish.token_variable, *arguments)
        except RemoteUnavailable as error:
            # Perhaps only the answer was lost, or somebody else pushed first.
            if _remote_branch_tip(publish) == commit:
                return shown
            _check_fast_forward(repository, publish, commit)
            if refused := _REFUSED.search(error.output):
                raise _push_refusal(publish, f"{one_line(refused[1], 200)}. {error}") from None
            raise
        if _remote_branch_tip(publish) != commit:
            # Git's word alone is not enough: a server may drop what it has taken.
            raise _push_refusal(publish, "it took the push, and has no such commit")
    except (RemoteUnavailable, GitNotInstalled) as error:
        raise typed_failure(
            "Dependency",
            as_sentence(f"The branch {publish.branch} cannot be pushed to {shown}: {error}"),
            retry=may_retry_activity(),
        ) from error
    return shown


def _check_local_remote(publish: Publish, named: Sequence[str]) -> None:
    """Refuse a repository of this host in which only its own programs could take a push."""
    if not publish.remote.startswith(LOCAL):
        return
    try:
        if local := GitFolder.at_address(publish.remote, named):
            local.check_push()
    except ConfigError as refusal:
        raise _push_refusal(publish, str(refusal)) from None


def _push_refusal(publish: Publish, why: str) -> ApplicationError:
    shown = git_address_without_user(publish.remote)
    return typed_failure(
        "PublishRefused",
        as_sentence(f"{shown} does not take the branch {publish.branch}: {why}"),
    )


def _remote_branch_tip(publish: Publish) -> str | None:
    ref = f"refs/heads/{publish.branch}"
    listed = run_remote_git(
        None, publish.remote, publish.token_variable, "ls-remote", publish.remote, ref,
        seconds=LOOK_SECONDS,
    )  # fmt: skip
    rows = (line.partition("\t") for line in listed.splitlines())
    return next((tip for tip, _, name in rows if name == ref), None)


def _check_fast_forward(repository: ProjectRepository, publish: Publish, commit: str) -> None:
    tip = _remote_branch_tip(publish)
    if tip is None or (tip in repository.git and repository.git.descendant_of(commit, tip)):
        return
    raise typed_failure(
        "BranchMoved",
        f"The branch {publish.branch} at {git_address_without_user(publish.remote)} stands at "
        f"{tip[:12]}, "
        f"which the work ({commit[:12]}) is not built on. Nothing was pushed.",
    )

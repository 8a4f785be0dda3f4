"""Ownership of a job's checkpoints: one workflow's, in its repository and its remote."""

from pathlib import Path

from temporalio import activity

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root
from activities.checkpoints.checkpoint_errors import RemoteUnfit
from activities.checkpoints.forgotten_records import find_forgotten_record
from activities.checkpoints.remote import open_remote, remote_owner
from activities.checkpoints.repository_owner import OWNER_FILE, OwnerMark, record_owner
from activities.runtime.activity_info import activity_job_id
from config.schema.agent import AgentConfig, ConfigError
from config.schema.workspace import Workspace
from protocol.git_address import git_address_without_user
from protocol.prepare_requests import PrepareRequest


def claim_ownership(
    root: Root,
    repository: Path,
    chain: str,
    *,
    project: str = "",
    keep_days: float | None = None,
    remote: str | None = None,
) -> None:
    refuse_unusable_id(root)
    mark = OwnerMark(
        chain=chain,
        job=activity_job_id(),
        namespace=activity.info().namespace,
        project=project,
        keep_days=keep_days,
        remote=remote or "",
    )
    owner = record_owner(repository, mark)
    if owner is None:
        raise OSError(f"{repository / OWNER_FILE} says whose the job is, and cannot be read")
    # A reset project restarts its jobs under the same ids; its own repository keeps other
    # projects of its id from starting.
    begun_anew = project != "" and owner.project == project
    if owner.chain != chain and not begun_anew:
        raise ConfigError(
            f"a job with the id {activity_job_id()} has already run on this workspaces root; "
            "start this one under another id"
        )


def refuse_unusable_id(root: Root) -> None:
    """Refuse the id of a forgotten job, which its remains in the stores carry, and one that people
    could not read in one line.
    """
    if not activity_job_id().isprintable():
        raise ConfigError(
            f"the id {activity_job_id()!r} has characters that are not printed, such as a line "
            "break; start it under another id"
        )
    if record := find_forgotten_record(root, activity_job_id()):
        raise ConfigError(f"{record.message}; start this one under another id")


def check_remote_ownership(config: AgentConfig, request: PrepareRequest) -> list[str]:
    url = config.workspace.remote
    if url is None:
        return []
    if request.project:
        # The jobs and the project exchange files in one place. Its own id was looked for there.
        config.workspace = Workspace(remote=request.project.remote or None)
        return []
    try:
        open_remote(url).check_promises()
        owner = remote_owner(url, activity_job_id())
    except (GitNotInstalled, RemoteUnfit) as problem:
        raise ConfigError(f"workspace.remote {git_address_without_user(url)}: {problem}") from None
    except RemoteUnavailable as error:
        return [f"the remote {url} cannot be reached: {error}; checkpoints wait for it here"]
    if owner not in (None, request.chain):
        raise ConfigError(
            f"a job with the id {activity_job_id()} is already in the remote {url}; "
            "start this one under another id"
        )
    return []

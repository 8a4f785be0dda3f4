"""Whose a job's checkpoints are: one workflow's, in its repository and in its remote."""

from __future__ import annotations

from pathlib import Path

from activities.checkpoints import NoGit, RemoteAway
from activities.checkpoints.remote import owner_at, take_mark
from activities.opening import job_id
from config.schema import AgentConfig, Problem
from config.workspace import Workspace
from protocol.starting import PrepareRequest


def claim(repository: Path, chain: str) -> None:
    """A repository belongs to one workflow; another of the same id would write into its history.

    Raises:
        Problem: it has an owner, and that is another one.
    """
    if take_mark(repository, chain) != chain:
        raise Problem(
            f"a job with the id {job_id()} has already run on this workspaces root; "
            "start this one under another id"
        )


def join(config: AgentConfig, request: PrepareRequest) -> list[str]:
    """See that the remote, if there is one, may take this job; gives lines for people."""
    url = config.workspace.remote
    if url is None:
        return []
    if request.project:
        # Its files, and those of the project, are handed to and fro on one root.
        config.workspace = Workspace(remote=None)
        return ["workspace.remote is left out: the jobs of a project stay on its root"]
    try:
        owner = owner_at(url, job_id())
    except NoGit as problem:
        raise Problem(str(problem)) from None
    except RemoteAway as away:
        return [f"the remote {url} cannot be reached: {away}; checkpoints wait for it here"]
    if owner not in (None, request.chain):
        raise Problem(
            f"a job with the id {job_id()} is already in the remote {url}; "
            "start this one under another id"
        )
    return []

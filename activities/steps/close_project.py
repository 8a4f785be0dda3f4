"""Closes a project with its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from temporalio import activity

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root
from activities.commands.private_folder import remove_private_folders
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_state import commit_project_files
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.source_repository.branch_files import make_branch_patch
from activities.steps.cancel_start import cancel_own_run
from protocol.project import PATCH, RESULT
from protocol.project_requests import CloseProjectRequest
from protocol.requests import CheckpointReply

CloseProject = Callable[[CloseProjectRequest], Coroutine[Any, Any, CheckpointReply]]


def close_project_activity(root: Root) -> CloseProject:
    """Return `close_project` for a workspaces root."""

    @activity.defn(name="close_project")
    async def close_project(request: CloseProjectRequest) -> CheckpointReply:
        with typed_failures():
            async with heartbeats():
                check_activity_root(root, request.root, request.remote)
                reply = await asyncio.to_thread(_close_project, root, request)
                if request.request_cancel:
                    await cancel_own_run()
                return reply

    return close_project


def _close_project(root: Root, request: CloseProjectRequest) -> CheckpointReply:
    """Commit the result to the state branch; it names the final commit of the product."""
    repository = open_remote_project(
        root, activity_job_id(), request.remote, request.head, request.state
    )
    result = request.result.model_copy(update={"commit": request.head})
    text = result.model_dump_json(indent=2) + "\n"
    story = f"Project {request.result.status}\n\n{request.result.summary}"
    files = {RESULT: text.encode()}
    if (origin := repository.origin) and origin.commit != request.head:
        # Without git there is no patch, but people can clone the repository itself.
        with suppress(GitNotInstalled, RemoteUnavailable):
            files[PATCH] = make_branch_patch(repository, origin.commit, request.head)
    commit = commit_project_files(repository, request.state, files, story)
    push_project(repository, activity_job_id(), request.remote)
    remove_private_folders(root, activity_job_id())
    return CheckpointReply(commit=commit, at=activity_schedule_time())

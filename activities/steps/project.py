"""The activities of a project: prepare, take over a job's work, merge it, write state, close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import activity

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root, job_folder_name
from activities.commands.private_folder import remove_private_folders
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.model.endpoint import Connect
from activities.preparation.new_project import create_project
from activities.preparation.search_attributes import registered_search_attributes
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_repository import MAIN
from activities.projects.project_state import commit_project_files, write_project_units
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats, heartbeats_from_thread
from activities.source_repository.branch_files import make_branch_patch
from activities.steps.cancel_start import cancel_own_run
from activities.steps.take_work import TakeWorkActivity
from protocol.project import PATCH, RESULT
from protocol.project_requests import (
    CloseProjectRequest,
    MergeReply,
    MergeRequest,
    ProjectPrepareReply,
    ProjectPrepareRequest,
    WriteStateRequest,
)
from protocol.requests import CheckpointReply


def project_activities(root: Root, connect: Connect) -> list[Callable[..., Any]]:
    """Return the activities of projects for a workspaces root."""

    @activity.defn(name="prepare_project")
    async def prepare_project(request: ProjectPrepareRequest) -> ProjectPrepareReply:
        with typed_failures():
            async with heartbeats():
                registered = await registered_search_attributes(activity.client())
                return await asyncio.to_thread(
                    create_project, root, request.start, request.chain, registered
                )

    @activity.defn(name="merge_work")
    def merge_work(request: MergeRequest) -> MergeReply:
        with typed_failures(), heartbeats_from_thread():
            check_activity_root(root, request.root, request.remote)
            needed = (request.head, request.commit)
            repository = open_remote_project(root, activity_job_id(), request.remote, *needed)
            commit, conflicts = repository.merge(
                request.head, request.commit, request.message, activity_schedule_time()
            )
            if conflicts:
                repository.set_branch(f"jobs/{job_folder_name(request.job)}", commit)
            else:
                repository.set_branch(MAIN, commit)
            push_project(repository, activity_job_id(), request.remote)
            return MergeReply(commit=commit, conflicts=conflicts)

    @activity.defn(name="write_project_state")
    def write_project_state(request: WriteStateRequest) -> CheckpointReply:
        with typed_failures(), heartbeats_from_thread():
            check_activity_root(root, request.root, request.remote)
            repository = open_remote_project(root, activity_job_id(), request.remote, request.state)
            commit = write_project_units(repository, request)
            push_project(repository, activity_job_id(), request.remote)
            return CheckpointReply(commit=commit, at=activity_schedule_time())

    @activity.defn(name="close_project")
    async def close_project(request: CloseProjectRequest) -> CheckpointReply:
        with typed_failures():
            async with heartbeats():
                check_activity_root(root, request.root, request.remote)
                reply = await asyncio.to_thread(_close_project, root, request)
                if request.request_cancel:
                    await cancel_own_run()
                return reply

    return [
        prepare_project,
        TakeWorkActivity(root, connect).take_work,
        merge_work,
        write_project_state,
        close_project,
    ]


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

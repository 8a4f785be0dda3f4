"""The activities of a project, from its start to its result."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from temporalio import activity

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root, job_folder_name
from activities.commands.private_folder import remove_private_folders
from activities.job.activity_context import check_activity_root
from activities.preparation.new_project import create_project
from activities.preparation.search_attributes import registered_search_attributes
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_repository import MAIN, ProjectRepository
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.source_repository.branch_files import make_branch_patch
from activities.source_repository.branch_push import check_push_place, push_branch
from activities.steps.cancel_start import cancel_own_run
from activities.steps.root_activity import async_activity, coroutine_activity, thread_activity
from activities.text.safe_text import as_readable_json
from config.agent_files import load_agent
from protocol.project_requests import (
    CloseProjectRequest,
    MergeReply,
    MergeRequest,
    ProjectPrepareReply,
    ProjectPrepareRequest,
    ProjectRequest,
    PublishProjectRequest,
    WriteStateRequest,
)
from protocol.project_start import FORM_SPECS
from protocol.project_units import PATCH, RESULT, STATE
from protocol.publishing import BranchResult
from protocol.requests import CheckpointReply


@coroutine_activity
async def prepare_project(root: Root, request: ProjectPrepareRequest) -> ProjectPrepareReply:
    registered = await registered_search_attributes(activity.client())
    return await asyncio.to_thread(create_project, root, request.start, request.chain, registered)


def _open_project(root: Root, request: ProjectRequest, *needed: str) -> ProjectRepository:
    check_activity_root(root, request.root, request.remote)
    return open_remote_project(root, activity_job_id(), request.remote, *needed)


@coroutine_activity
async def close_project(root: Root, request: CloseProjectRequest) -> CheckpointReply:
    reply = await asyncio.to_thread(_close_project, root, request)
    if request.request_cancel:
        await cancel_own_run()
    return reply


def _close_project(root: Root, request: CloseProjectRequest) -> CheckpointReply:
    repository = _open_project(root, request, request.head, request.state)
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
    return CheckpointReply(commit=commit, at=activity_schedule_seconds())


@thread_activity
def merge_work(root: Root, request: MergeRequest) -> MergeReply:
    repository = _open_project(root, request, request.head, request.commit)
    commit, conflicts = repository.merge(
        request.head, request.commit, request.message, activity_schedule_seconds()
    )
    if conflicts:
        repository.set_branch(f"jobs/{job_folder_name(request.job)}", commit)
    else:
        repository.set_branch(MAIN, commit)
    push_project(repository, activity_job_id(), request.remote)
    return MergeReply(commit=commit, conflicts=conflicts)


@async_activity
def publish_project(root: Root, request: PublishProjectRequest) -> BranchResult:
    repository = _open_project(root, request, request.head)
    origin = repository.origin
    result = BranchResult(
        base=origin.commit if origin else "", commit=request.head, branch=request.publish.branch
    )
    if result.base == request.head:
        return result.model_copy(update={"commit": ""})
    rights = load_agent("generalist").start
    check_push_place(root, rights, request.publish)
    address = push_branch(repository, request.publish, request.head, rights.folders or ())
    return result.model_copy(update={"published": address})


@thread_activity
def write_project_state(root: Root, request: WriteStateRequest) -> CheckpointReply:
    repository = _open_project(root, request, request.state)
    commit = write_project_units(repository, request)
    push_project(repository, activity_job_id(), request.remote)
    return CheckpointReply(commit=commit, at=activity_schedule_seconds())


def write_project_units(repository: ProjectRepository, request: WriteStateRequest) -> str:
    """Update the changed units in the state file; return the commit."""
    form = FORM_SPECS[request.form]
    name, key = form.state_file, form.units_key
    raw = repository.read_file(request.state, name)
    state: dict[str, Any] = json.loads(raw) if raw else {}
    units = {unit["id"]: unit for unit in state.get(key, [])}
    for unit in request.units:
        units[unit["id"]] = unit
    state = {key: list(units.values())}
    if request.scope:
        state["items"] = [item.model_dump() for item in request.scope]
    return commit_project_files(
        repository, request.state, {name: as_readable_json(state).encode()}, request.why
    )


def commit_project_files(
    repository: ProjectRepository, before: str, files: dict[str, bytes], story: str
) -> str:
    """Commit the project's own files to the state branch; return the commit."""
    tree = repository.with_files(repository.tree_id(before), files)
    if tree == repository.tree_id(before):
        return before
    commit = repository.commit(tree, [before], story, activity_schedule_seconds())
    repository.set_branch(STATE, commit)
    return commit

"""Pushes the branch of a project once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import (
    activity_job_id,
    check_activity_root,
)
from activities.projects.project_remote import open_remote_project
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.source_repository.branch_push import check_push_place, push_branch
from config.agent_files import load_agent
from protocol.project_requests import PublishProjectRequest
from protocol.publishing import BranchResult

PublishProject = Callable[[PublishProjectRequest], Coroutine[Any, Any, BranchResult]]


def publish_project_activity(root: Root) -> PublishProject:
    """Return `publish_project` for a workspaces root."""

    @activity.defn(name="publish_project")
    async def publish_project(request: PublishProjectRequest) -> BranchResult:
        with typed_failures():
            async with heartbeats():
                return await asyncio.to_thread(_publish_project, root, request)

    return publish_project


def _publish_project(root: Root, request: PublishProjectRequest) -> BranchResult:
    check_activity_root(root, request.root, request.remote)
    repository = open_remote_project(root, activity_job_id(), request.remote, request.head)
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

"""The activities that push the branch of a job or project once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import (
    activity_job_id,
    check_activity_root,
    open_activity_snapshot,
)
from activities.projects.project_remote import open_remote_project
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.source_repository.branch_push import push_branch
from activities.source_repository.job_branch import (
    commit_job_branch,
    completed_branch_story,
    open_branch_repository,
)
from config.schema.agent import ConfigError
from protocol.project_requests import PublishProjectRequest
from protocol.publishing import BranchResult, PublishRequest


def publish_activities(root: Root) -> list[Callable[..., Any]]:
    """Return `publish_branch` and `publish_project` for a workspaces root."""

    @activity.defn(name="publish_branch")
    async def publish_branch(request: PublishRequest) -> BranchResult:
        with typed_failures():
            async with heartbeats():
                return await asyncio.to_thread(_publish_job, root, request)

    @activity.defn(name="publish_project")
    async def publish_project(request: PublishProjectRequest) -> BranchResult:
        with typed_failures():
            async with heartbeats():
                return await asyncio.to_thread(_publish_project, root, request)

    return [publish_branch, publish_project]


def _publish_job(root: Root, request: PublishRequest) -> BranchResult:
    snapshot = open_activity_snapshot(root, request)
    link = snapshot.repository
    if link is None or link.publish is None:
        raise ConfigError("publish: the job has no branch to push")
    result = commit_job_branch(
        root,
        snapshot,
        activity_job_id(),
        request.starts,
        completed_branch_story(snapshot, request.call),
    )
    if not result.commit:
        return result
    address = push_branch(open_branch_repository(root, snapshot, link), link.publish, result.commit)
    return result.model_copy(update={"published": address})


def _publish_project(root: Root, request: PublishProjectRequest) -> BranchResult:
    check_activity_root(root, request.root, request.remote)
    repository = open_remote_project(root, activity_job_id(), request.remote, request.head)
    origin = repository.origin
    result = BranchResult(
        base=origin.commit if origin else "", commit=request.head, branch=request.publish.branch
    )
    if result.base == request.head:
        return result.model_copy(update={"commit": ""})
    address = push_branch(repository, request.publish, request.head)
    return result.model_copy(update={"published": address})

"""Prepares a project: checks all of it before anything is created."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.preparation.new_project import create_project
from activities.preparation.search_attributes import registered_search_attributes
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from protocol.project_requests import ProjectPrepareReply, ProjectPrepareRequest

PrepareProject = Callable[[ProjectPrepareRequest], Coroutine[Any, Any, ProjectPrepareReply]]


def prepare_project_activity(root: Root) -> PrepareProject:
    """Return `prepare_project` for a workspaces root."""

    @activity.defn(name="prepare_project")
    async def prepare_project(request: ProjectPrepareRequest) -> ProjectPrepareReply:
        with typed_failures():
            async with heartbeats():
                registered = await registered_search_attributes(activity.client())
                return await asyncio.to_thread(
                    create_project, root, request.start, request.chain, registered
                )

    return prepare_project

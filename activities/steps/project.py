"""The activities of a project: begin, look into a job's work, merge it, write state, close."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from temporalio import activity

from activities.checkpoints import Root, folder_name
from activities.commands.private import forget_private
from activities.job.activity_context import check_root, job_id, scheduled_at
from activities.job.done_when import checked
from activities.job.plan_file import listed_under
from activities.model.endpoint import Connect
from activities.projects.needs import lacking
from activities.projects.repository import MAIN, Repository, repository_path
from activities.runtime.failures import failure, typed
from activities.runtime.heartbeats import heartbeats, heartbeats_from_thread
from activities.starting.agent_resolution import choose_models
from activities.starting.ownership import check_free, claim
from activities.starting.search_attributes import registered_attributes
from activities.steps.cancel_start import ask_server
from activities.steps.notify import notifying_of
from activities.steps.take_work import Taking
from activities.text.plain import as_json, title
from activities.toolkit.ownership import refusal
from config.loader import load_agent
from config.schema.agent import AgentConfig, Problem
from protocol.project import BRIEF, MOST_SCOPE_AND_SETTINGS, RESULT, STATE, STATE_FILES
from protocol.project_requests import (
    CloseProjectRequest,
    MergeReply,
    MergeRequest,
    ProjectPrepareReply,
    ProjectPrepareRequest,
    WriteStateRequest,
)
from protocol.project_start import ROLES, ProjectStart
from protocol.requests import CheckpointReply
from protocol.scope import given_items, too_large
from protocol.state import DoneWhen
from protocol.text import SUBJECT, one_line

MOST_ID = 150
OF_EVERY_JOB = ("notes", "output")
"""Folders that jobs write to whatever they are asked for."""


def project_activities(root: Root, connect: Connect) -> list[Callable[..., Any]]:
    """Every activity of projects, bound to a workspaces root and to models."""

    @activity.defn(name="prepare_project")
    async def prepare_project(request: ProjectPrepareRequest) -> ProjectPrepareReply:
        with typed():
            async with heartbeats():
                registered = await registered_attributes(activity.client())
                return await asyncio.to_thread(
                    _prepare, root, request.start, request.chain, registered
                )

    @activity.defn(name="merge_work")
    def merge_work(request: MergeRequest) -> MergeReply:
        with typed(), heartbeats_from_thread():
            check_root(root, request.root)
            repository = _repository(root)
            made, conflicts = repository.merge(
                request.head, request.commit, request.message, scheduled_at()
            )
            if conflicts:
                repository.point(f"jobs/{folder_name(request.job)}", made)
            else:
                repository.point(MAIN, made)
            return MergeReply(commit=made, conflicts=conflicts)

    @activity.defn(name="write_project_state")
    def write_project_state(request: WriteStateRequest) -> CheckpointReply:
        with typed(), heartbeats_from_thread():
            check_root(root, request.root)
            made = _write_state(_repository(root), request)
            return CheckpointReply(commit=made, at=scheduled_at())

    @activity.defn(name="close_project")
    async def close_project(request: CloseProjectRequest) -> CheckpointReply:
        with typed():
            async with heartbeats():
                check_root(root, request.root)
                made = await asyncio.to_thread(_close, root, request)
                if request.request_cancel:
                    await ask_server()
                return made

    return [
        prepare_project,
        Taking(root, connect).take_work,
        merge_work,
        write_project_state,
        close_project,
    ]


def _prepare(
    root: Root, start: ProjectStart, chain: str, registered: list[str]
) -> ProjectPrepareReply:
    """Check what was started as far as it can be, and make the repository."""
    if len(job_id()) > MOST_ID:
        raise Problem(f"the id of a project has at most {MOST_ID} characters: its jobs' follow")
    check_free(root)
    agents = checked_agents(start)
    if why := refusal(start.product, "tactical"):
        raise Problem(f"product: {why}")
    if start.form == "features" and start.product in OF_EVERY_JOB:
        raise Problem(
            f"product: every job writes to {start.product}/, and a tester has to leave what it "
            "is handed as it is; choose another folder"
        )
    for condition in _conditions(start):
        try:
            checked(condition)
        except ValueError as wrong:
            raise Problem(f"condition {condition.line}: {wrong}") from None
    items = start.items or listed_under(start.instructions, "Scope")
    if start.form == "groups" and not items:
        raise Problem(
            "a project of groups divides a scope: give `items`, or list them under a heading "
            "Scope in the instructions"
        )
    scope = given_items(items) if start.form == "groups" else []
    if why := too_large(scope):
        raise Problem(why)
    kept = [start.model_copy(update={"items": [], "instructions": ""}), *scope]
    size = sum(len(part.model_dump_json(exclude_defaults=True).encode()) for part in kept)
    if scope and size > MOST_SCOPE_AND_SETTINGS:
        raise Problem(
            f"the scope and the settings have {size:,} bytes together; at most "
            f"{MOST_SCOPE_AND_SETTINGS:,} are taken"
        )
    notifying = notifying_of(agents, start.notify)
    if why := lacking(start, agents):
        raise failure("Dependency", why)
    path = repository_path(root, job_id())
    repository = Repository.create(path)
    claim(root, path, chain, keep_days=kept_days(agents))
    name = start.title or title(start.instructions) or job_id()
    brief = f"# {name}\n\n{start.instructions.strip()}\n"
    nothing = str(repository.git.TreeBuilder().write())
    commit = repository.commit(nothing, [], f"Begin: {one_line(name, SUBJECT - 7)}", scheduled_at())
    repository.point(MAIN, commit)
    told = repository.with_files(nothing, {BRIEF: brief.encode()})
    state = repository.commit(told, [], f"Project: {one_line(name, SUBJECT - 9)}", scheduled_at())
    repository.point(STATE, state)
    return ProjectPrepareReply(
        root=root.id,
        repository=str(path),
        title=name,
        commit=commit,
        state=state,
        scope=scope,
        search_attributes=registered,
        notifying=notifying,
    )


def checked_agents(start: ProjectStart) -> list[AgentConfig]:
    """The agents of a project whose jobs can begin. Raises Problem."""
    limits = {f"limits.job.{k}": v for k, v in start.limits.model_dump().items() if v is not None}
    wanted = [(start.agent(role), start.set) for role in ROLES[start.form]]
    wanted += [(stage.agent, {**start.set, **stage.set}) for stage in start.stages]
    agents = [load_agent(agent, {**settings, **limits}) for agent, settings in wanted]
    for config in agents:
        choose_models(config)
    return agents


def kept_days(agents: list[AgentConfig]) -> float | None:
    """How long a project is kept: as long as the agent that keeps longest wants it."""
    wanted = [config.keep_days for config in agents]
    days = [one for one in wanted if one is not None]
    return max(days) if days and len(days) == len(wanted) else None


def _conditions(start: ProjectStart) -> list[DoneWhen]:
    of_stages = [each for stage in start.stages for each in (*stage.needs, *stage.delivers)]
    return [*start.success, *of_stages]


def _repository(root: Root) -> Repository:
    """Of the project at work: an activity of its workflow."""
    return Repository(repository_path(root, job_id()))


def _write_state(repository: Repository, request: WriteStateRequest) -> str:
    """Bring the units that changed up to date in the state file."""
    name = STATE_FILES[request.form]
    raw = repository.file(request.state, name)
    state: dict[str, Any] = json.loads(raw) if raw else {}
    key = {"features": "features", "groups": "groups", "pipeline": "stages"}[request.form]
    held = {unit["id"]: unit for unit in state.get(key, [])}
    for unit in request.units:
        held[unit["id"]] = unit
    state = {key: list(held.values())}
    if request.scope:
        state["items"] = [item.model_dump() for item in request.scope]
    return _keep(repository, request.state, {name: as_json(state)}, request.why)


def _close(root: Root, request: CloseProjectRequest) -> CheckpointReply:
    """Write the result beside the product, and name in it where that ends."""
    repository = _repository(root)
    result = request.result.model_copy(update={"commit": request.head})
    text = result.model_dump_json(indent=2) + "\n"
    story = f"Project {request.result.status}\n\n{request.result.summary}"
    made = _keep(repository, request.state, {RESULT: text}, story)
    forget_private(root, job_id())
    return CheckpointReply(commit=made, at=scheduled_at())


def _keep(repository: Repository, before: str, files: dict[str, str], story: str) -> str:
    """Put files of the project's own on their branch; the commit that has them."""
    written = {name: text.encode() for name, text in files.items()}
    tree = repository.with_files(repository.tree_id(before), written)
    if tree == repository.tree_id(before):
        return before
    made = repository.commit(tree, [before], story, scheduled_at())
    repository.point(STATE, made)
    return made

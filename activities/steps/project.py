"""The activities of a project: prepare, take over a job's work, merge it, write state, close."""

from __future__ import annotations

import asyncio
import json
import shlex
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
from activities.job.done_when import check_done_when
from activities.job.plan_and_todo_files import list_under_heading
from activities.model.endpoint import Connect
from activities.projects.project_remote import (
    check_remote_project_owner,
    open_remote_project,
    push_project,
)
from activities.projects.project_repository import MAIN, ProjectRepository, project_repository_path
from activities.projects.required_commands import failing_required_command
from activities.repository.bounds import RepositoryBounds
from activities.repository.branch import make_branch_patch
from activities.repository.repository_fetch import fetch_pinned_repository
from activities.runtime.failures import typed_failure, typed_failures
from activities.runtime.heartbeats import heartbeats, heartbeats_from_thread
from activities.starting.agent_resolution import choose_agent_models
from activities.starting.repository_ownership import (
    check_forgotten_ownership,
    claim_repository_ownership,
)
from activities.starting.search_attributes import registered_search_attributes
from activities.steps.cancel_start import cancel_own_run
from activities.steps.notify import resolve_notify_recipients
from activities.steps.take_work import TakeWorkActivity
from activities.text.safe_text import as_readable_json, text_title_line
from activities.toolkit.path_ownership import owned_path_refusal
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from protocol.commit_message import SUBJECT
from protocol.project import BRIEF, MOST_SCOPE_AND_SETTINGS, PATCH, RESULT, STATE
from protocol.project_forms import FORM_SPECS
from protocol.project_requests import (
    CloseProjectRequest,
    MergeReply,
    MergeRequest,
    ProjectPrepareReply,
    ProjectPrepareRequest,
    WriteStateRequest,
)
from protocol.project_start import ProjectStart
from protocol.repository_link import RepositoryOrigin
from protocol.requests import CheckpointReply
from protocol.scope_ledger import ScopeItem, scope_from_texts, scope_size_fault
from protocol.short_text import one_line
from protocol.todo_list import DoneWhen

MAX_ID = 150
OF_EVERY_JOB = ("notes", "output")
"""Folders that every job writes to, whatever its task."""

OTHER_NEEDS = (
    "If the need itself is wrong, mend it in the project's file and begin anew: "
    "`starter.py cancel {id}`, then `starter.py project FILE --id {id}`."
)


def project_activities(root: Root, connect: Connect) -> list[Callable[..., Any]]:
    """Return the activities of projects for a workspaces root."""

    @activity.defn(name="prepare_project")
    async def prepare_project(request: ProjectPrepareRequest) -> ProjectPrepareReply:
        with typed_failures():
            async with heartbeats():
                registered = await registered_search_attributes(activity.client())
                return await asyncio.to_thread(
                    _prepare_project, root, request.start, request.chain, registered
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
            commit = _write_project_state(repository, request)
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


def _prepare_project(
    root: Root, start: ProjectStart, chain: str, registered: list[str]
) -> ProjectPrepareReply:
    """Check the start as far as possible, then create the project's repository."""
    if len(activity_job_id()) > MAX_ID:
        raise ConfigError(f"the id of a project has at most {MAX_ID} characters: its jobs' follow")
    check_forgotten_ownership(root)
    agents = load_project_agents(start)
    _check_project_product(start)
    for condition in _project_conditions(start):
        try:
            check_done_when(condition)
        except ValueError as wrong:
            raise ConfigError(f"condition {condition.line}: {wrong}") from None
    scope = _prepare_project_scope(start)
    notifying = resolve_notify_recipients(agents, start.notify)
    if why := failing_required_command(start, agents):
        raise typed_failure(
            "Dependency", f"{why} {OTHER_NEEDS.format(id=shlex.quote(activity_job_id()))}"
        )
    remote = shared_project_remote(agents)
    if remote:
        check_remote_project_owner(remote, activity_job_id(), chain)
    path = project_repository_path(root, activity_job_id())
    repository = ProjectRepository.create(path)
    claim_repository_ownership(root, path, chain, keep_days=longest_project_keep_days(agents))
    name = start.title or text_title_line(start.instructions) or activity_job_id()
    brief = f"# {name}\n\n{start.instructions.strip()}\n"
    nothing = str(repository.git.TreeBuilder().write())
    notices: list[str] = []
    origin: RepositoryOrigin | None = None
    if start.repository:
        bounds = RepositoryBounds.of_agents(*agents)
        origin = fetch_pinned_repository(root, activity_job_id(), start.repository, bounds, remote)
        commit, notices = origin.commit, [f"repository: {note}" for note in origin.notes]
    else:
        begin = f"Begin: {one_line(name, SUBJECT - 7)}"
        commit = repository.commit(nothing, [], begin, activity_schedule_time())
    repository.set_branch(MAIN, commit)
    tree = repository.with_files(nothing, {BRIEF: brief.encode()})
    state = repository.commit(
        tree, [], f"Project: {one_line(name, SUBJECT - 9)}", activity_schedule_time()
    )
    repository.set_branch(STATE, state)
    push_project(repository, activity_job_id(), remote)
    return ProjectPrepareReply(
        root=root.id,
        remote=remote,
        repository=str(path),
        title=name,
        origin=origin.pinned if origin else None,
        commit=commit,
        state=state,
        scope=scope,
        search_attributes=registered,
        notifying=notifying,
        notices=notices,
    )


def _check_project_product(start: ProjectStart) -> None:
    if why := owned_path_refusal(start.product, "tactical"):
        raise ConfigError(f"product: {why}")
    if start.form == "features" and start.product in OF_EVERY_JOB:
        raise ConfigError(
            f"product: every job writes to {start.product}/, and a tester has to leave what it "
            "is handed as it is; choose another folder"
        )


def _prepare_project_scope(start: ProjectStart) -> list[ScopeItem]:
    """Return the items that a project of groups divides; empty for other forms.

    Raises:
        ConfigError: There are no items, or they have too many bytes for Temporal's history.
    """
    if start.form != "groups":
        return []
    items = start.items or list_under_heading(start.instructions, "Scope")
    if not items:
        raise ConfigError(
            "a project of groups divides a scope: give `items`, or list them under a heading "
            "Scope in the instructions"
        )
    scope = scope_from_texts(items)
    if why := scope_size_fault(scope):
        raise ConfigError(why)
    stored = [start.model_copy(update={"items": [], "instructions": ""}), *scope]
    size = sum(len(part.model_dump_json(exclude_defaults=True).encode()) for part in stored)
    if size > MOST_SCOPE_AND_SETTINGS:
        raise ConfigError(
            f"the scope and the settings have {size:,} bytes together; at most "
            f"{MOST_SCOPE_AND_SETTINGS:,} are taken"
        )
    return scope


def load_project_agents(start: ProjectStart) -> list[AgentConfig]:
    """Load the agents of the project's roles and stages. Raises ConfigError."""
    limits = {f"limits.job.{k}": v for k, v in start.limits.model_dump().items() if v is not None}
    selected = [(start.agent(role), start.set) for role in FORM_SPECS[start.form].roles]
    selected += [(stage.agent, {**start.set, **stage.set}) for stage in start.stages]
    agents = [load_agent(agent, {**settings, **limits}) for agent, settings in selected]
    for config in agents:
        choose_agent_models(config)
    return agents


def shared_project_remote(agents: list[AgentConfig]) -> str:
    """Return the remote that all agents of a project share. Raises ConfigError if they differ."""
    remotes = {config.workspace.remote or "" for config in agents}
    if len(remotes) > 1:
        raise ConfigError(
            "workspace.remote: the agents of a project share one remote; set it for all of them, "
            "in the project's `set` or in defaults.yaml"
        )
    return remotes.pop() if remotes else ""


def longest_project_keep_days(agents: list[AgentConfig]) -> float | None:
    """Return the longest time any of the agents keeps its data, in days; None if one keeps it
    forever.
    """
    all_days = [config.keep_days for config in agents]
    days = [value for value in all_days if value is not None]
    return max(days) if days and len(days) == len(all_days) else None


def _project_conditions(start: ProjectStart) -> list[DoneWhen]:
    of_stages = [each for stage in start.stages for each in (*stage.needs, *stage.delivers)]
    return [*start.success, *of_stages]


def _write_project_state(repository: ProjectRepository, request: WriteStateRequest) -> str:
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
    return _commit_project_files(
        repository, request.state, {name: as_readable_json(state).encode()}, request.why
    )


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
    commit = _commit_project_files(repository, request.state, files, story)
    push_project(repository, activity_job_id(), request.remote)
    remove_private_folders(root, activity_job_id())
    return CheckpointReply(commit=commit, at=activity_schedule_time())


def _commit_project_files(
    repository: ProjectRepository, before: str, files: dict[str, bytes], story: str
) -> str:
    """Commit the project's own files to the state branch; return the commit."""
    tree = repository.with_files(repository.tree_id(before), files)
    if tree == repository.tree_id(before):
        return before
    commit = repository.commit(tree, [before], story, activity_schedule_time())
    repository.set_branch(STATE, commit)
    return commit

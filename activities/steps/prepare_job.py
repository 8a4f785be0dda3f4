"""Prepares a job: checks everything before it creates anything."""

import asyncio

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import check_activity_root
from activities.job.snapshot import Snapshot
from activities.model.prompt import count_prompt_tokens
from activities.model.window import window_notice
from activities.phases.orientation import orientation_messages
from activities.preparation.agent_resolution import resolve_job_limits, resolve_tool_routes
from activities.preparation.fork import prepare_fork
from activities.preparation.fork_origin import (
    fetch_fork_origin,
    newest_fork_origin_phase,
    unforkable_job_error,
)
from activities.preparation.new_job import prepare_new_job
from activities.preparation.prepared_job import PreparedJob
from activities.preparation.search_attributes import registered_search_attributes
from activities.preparation.team_quotas import check_team_quota
from activities.projects.handoff_proof import add_handoff_proof_time
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.work_proof import add_work_proof_time
from activities.runtime.failures import typed_failure
from activities.steps.phase_start import offer_phase_tools, save_phase_start
from activities.steps.root_activity import coroutine_activity
from activities.tool_catalogue import EXTENSIONS
from config.agent_inheritance import overridden_agent_value
from config.schema.agent import ConfigError
from protocol.notices import as_notice
from protocol.prepare_requests import PrepareReply, PrepareRequest
from protocol.short_text import text_title_line


@coroutine_activity
async def prepare(root: Root, request: PrepareRequest) -> PrepareReply:
    root.check_presence()
    team = await _check_team(request)
    if request.project and request.project.root:
        check_activity_root(root, request.project.root, request.project.remote)
    fork = request.fork
    if fork:
        remote = overridden_agent_value(request.set, "workspace.remote")
        if request.project and request.project.remote:
            remote = request.project.remote
        await asyncio.to_thread(fetch_fork_origin, root, fork, remote)
    if fork and not root.repository(fork.job).exists():
        raise await unforkable_job_error(activity.client(), root, fork.job)
    # A project takes the number from the result of the job that it forks.
    newest = None
    if fork and not request.project:
        newest = await newest_fork_origin_phase(activity.client(), fork.job)
    registered = await registered_search_attributes(activity.client())
    return await asyncio.to_thread(_prepare_job, root, request, registered, newest, team)


async def _check_team(request: PrepareRequest) -> str:
    try:
        return await check_team_quota(request.team)
    except ConfigError as error:
        if request.project is None:
            raise
        # The project began with this team, which its next jobs must not lose to an edit.
        raise typed_failure("Dependency", str(error)) from None


def _prepare_job(
    root: Root, request: PrepareRequest, registered: list[str], newest: int | None, team: str
) -> PrepareReply:
    if request.project and request.project.remote:
        open_linked_remote_project(root, request.project)
    prepared = (
        prepare_fork(root, request, request.fork, newest)
        if request.fork
        else prepare_new_job(root, request)
    )
    snapshot, config = prepared.snapshot, prepared.snapshot.config
    if config.team != team:
        snapshot.pin_config(config.model_copy(update={"team": team}))
        config = snapshot.config
    if prepared.notifying:
        prepared.notifying.team = team
    notices = [*prepared.notices, *_begin_first_conversation(root, request, prepared)]
    timestamp, moved = save_phase_start(root, snapshot, prepared.story)
    notices += [*filter(None, [window_notice(snapshot)])]
    notices += [f"moved to lost+found: {path}" for path in moved]
    routes = add_handoff_proof_time(resolve_tool_routes(config, prepared.tools), snapshot.link)
    reply = PrepareReply(
        commit=snapshot.commit,
        at=timestamp,
        root=root.id,
        agent=config.name,
        model=config.model.name,
        title=_job_title(request, snapshot),
        state=snapshot.state.without_notes(),
        tools=add_work_proof_time(routes, snapshot),
        context=count_prompt_tokens(snapshot),
        limits=resolve_job_limits(config),
        search_attributes=registered,
        notices=[as_notice(each) for each in notices],
        notifying=prepared.notifying,
    )
    if snapshot.repository:
        reply.origin = snapshot.repository.origin.pinned
    if snapshot.repository and not snapshot.link:
        reply.has_repository, reply.publish = True, snapshot.repository.publish
        if reply.publish and reply.publish.approve:
            next(route for route in reply.tools if route.name == "job_complete").guarded = True
    if config.workspace.remote:
        reply.remote = config.workspace.remote
    return reply


def _begin_first_conversation(
    root: Root, request: PrepareRequest, prepared: PreparedJob
) -> list[str]:
    """Return notices of what stands beside the engine."""
    snapshot, fork, notices = prepared.snapshot, request.fork, list[str]()
    may_ask = snapshot.config.limits.clarifications > 0
    traces = offer_phase_tools(root, snapshot, may_ask=may_ask)
    for extension in EXTENSIONS:
        notices += [] if fork else extension.begin_job(root, snapshot)
    snapshot.begin_conversation(*orientation_messages(snapshot, prepared.last_page, traces))
    earlier = _earlier_jobs_to_replace(snapshot)
    for extension in EXTENSIONS:
        notices += extension.begin_fork(root, snapshot, fork.job) if fork else []
        notices += extension.replace_jobs(root, snapshot, earlier)
    return notices


def _job_title(request: PrepareRequest, snapshot: Snapshot) -> str:
    """Return a name for people: the first line of what is to be done.

    A job of a project has it in its handoff; its instructions begin with words that every job of
    the agent has.
    """
    task = request.project.handoff.task if request.project else ""
    return text_title_line(request.instructions or task or snapshot.read_text("instructions.md"))


def _earlier_jobs_to_replace(snapshot: Snapshot) -> list[str]:
    """Return earlier jobs to replace; none for planners and testers, which also start anew."""
    link = snapshot.link
    return link.earlier_jobs if link and not link.handoff.report else []

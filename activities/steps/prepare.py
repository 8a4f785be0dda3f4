"""Prepares a job: checks everything before it creates anything."""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.job.commit_messages import phase_message
from activities.job.job_folder import publish_checkpoint
from activities.job.snapshot import Snapshot
from activities.model.prompt import count_prompt_tokens
from activities.model.window import window_notice
from activities.phases.orientation import orientation_messages
from activities.phases.phase_tags import phase_tag
from activities.preparation.agent_resolution import resolve_job_limits, resolve_tool_routes
from activities.preparation.fork import prepare_fork
from activities.preparation.fork_origin import (
    fetch_fork_origin,
    newest_fork_origin_phase,
    unforkable_job_error,
)
from activities.preparation.new_job import prepare_new_job
from activities.preparation.search_attributes import registered_search_attributes
from activities.projects.handoff_proof import add_handoff_proof_time
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.work_proof import add_work_proof_time
from activities.requirements.store_sync import (
    update_store_after_fork,
    update_store_after_replacement,
)
from activities.requirements.versions import begin_new_version
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.toolkit.tool_offer import unoffered_tools
from activities.tools.tool_search import tools_for_list
from activities.traces.recall import recall_traces
from config.agent_overrides import overridden_agent_value
from protocol.notices import as_notice
from protocol.prepare_requests import PrepareReply, PrepareRequest
from protocol.short_text import text_title_line


class PrepareActivity:
    """The `prepare` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="prepare")
    async def prepare(self, request: PrepareRequest) -> PrepareReply:
        """Resolve and pin the configuration, import the documents, begin the first phase."""
        with typed_failures():
            async with heartbeats():
                self._root.check_presence()
                if request.project and request.project.root:
                    check_activity_root(self._root, request.project.root, request.project.remote)
                fork = request.fork
                if fork:
                    remote = overridden_agent_value(request.set, "workspace.remote")
                    if request.project and request.project.remote:
                        remote = request.project.remote
                    await asyncio.to_thread(fetch_fork_origin, self._root, fork, remote)
                if fork and not self._root.repository(fork.job).exists():
                    raise await unforkable_job_error(activity.client(), self._root, fork.job)
                # A project takes the number from the result of the job that it forks.
                newest = None
                if fork and not request.project:
                    newest = await newest_fork_origin_phase(activity.client(), fork.job)
                registered = await registered_search_attributes(activity.client())
                return await asyncio.to_thread(self._prepare_job, request, registered, newest)

    def _prepare_job(
        self, request: PrepareRequest, registered: list[str], newest: int | None
    ) -> PrepareReply:
        fork = request.fork
        if request.project and request.project.remote:
            open_linked_remote_project(self._root, request.project)
        prepared = (
            prepare_fork(self._root, request, fork, newest)
            if fork
            else prepare_new_job(self._root, request)
        )
        snapshot, config, state = (
            prepared.snapshot,
            prepared.snapshot.config,
            prepared.snapshot.state,
        )
        traces = recall_traces(self._root, snapshot)
        state.unused_tools = unoffered_tools(
            snapshot.files, has_traces=bool(traces), may_ask=config.limits.clarifications > 0
        )
        state.found_tools = tools_for_list(config, state)
        versions = [] if fork else begin_new_version(self._root, snapshot, activity_job_id())
        snapshot.begin_conversation(*orientation_messages(snapshot, prepared.last_page, traces))
        notices = [*prepared.notices, *versions]
        if fork:
            notices += update_store_after_fork(self._root, snapshot, fork.job)
        notices += update_store_after_replacement(
            self._root, snapshot, _earlier_jobs_to_replace(snapshot)
        )
        timestamp = activity_schedule_time()
        story = f"{prepared.story}{phase_message(state.phase.number, state.phase.name)}"
        commit = snapshot.save(story, timestamp)
        moved = publish_checkpoint(
            self._root, snapshot, phase_tag(state.phase.number), activity_effect_key()
        )
        reply = PrepareReply(
            commit=commit,
            at=timestamp,
            root=self._root.id,
            agent=config.name,
            model=config.model.name,
            title=_job_title(request, snapshot),
            state=state.without_notes(),
            tools=add_work_proof_time(
                add_handoff_proof_time(resolve_tool_routes(config, prepared.tools), snapshot.link),
                snapshot,
            ),
            context=count_prompt_tokens(snapshot),
            limits=resolve_job_limits(config),
            search_attributes=registered,
            notices=[
                as_notice(each)
                for each in (
                    *notices,
                    *filter(None, [window_notice(snapshot)]),
                    *(f"moved to lost+found: {path}" for path in moved[:20]),
                )
            ],
        )
        if snapshot.repository:
            reply.origin = snapshot.repository.origin.pinned
        if snapshot.repository and not snapshot.link:
            reply.has_repository, reply.publish = True, snapshot.repository.publish
            if reply.publish and reply.publish.approve:
                next(route for route in reply.tools if route.name == "job_complete").guarded = True
        if config.workspace.remote:
            reply.remote = config.workspace.remote
        reply.notifying = prepared.notifying
        return reply


def _job_title(request: PrepareRequest, snapshot: Snapshot) -> str:
    """Return a name for people: the first line of what is to be done.

    A job of a project has it in its handoff; its instructions begin with words that every job of
    the agent has.
    """
    task = request.project.handoff.task if request.project else ""
    return text_title_line(request.instructions or task or snapshot.read_text("instructions.md"))


def _earlier_jobs_to_replace(snapshot: Snapshot) -> list[str]:
    """Return the earlier jobs that this one replaces.

    Empty for planners and testers: they are also started anew after their reports were accepted.
    """
    link = snapshot.link
    return link.earlier_jobs if link and not link.handoff.report else []

"""Prepares a job: checks everything before it creates anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import (
    Checkpoints,
    Files,
    FilesError,
    PathRefused,
    Root,
    open_checkpoints,
)
from activities.documents.input_documents import read_input_documents
from activities.job.activity_context import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.job.job_folder import publish_checkpoint
from activities.job.plan_and_todo_files import list_under_heading
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.job.typed_result import (
    SCHEMA_FILE,
    check_result_schema,
    typed_result_schema_page,
    with_typed_result_rules,
)
from activities.job.workspace_summary import with_workspace_summary
from activities.model.prompt import count_prompt_tokens
from activities.phases.orientation import orientation_messages
from activities.phases.predefined_todos import (
    STRATEGIC_NAMES,
    begin_configured_list,
    predefined_todos,
)
from activities.phases.tags import phase_tag
from activities.projects.handoff import (
    add_handoff_proof_time,
    prepare_handoff_workspace,
    render_handoff,
)
from activities.projects.project_remote import (
    open_linked_remote_project,
    open_remote_project,
    push_start_to_project_remote,
)
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.repository.bounds import RepositoryBounds
from activities.repository.repository_fetch import fetch_pinned_repository
from activities.repository.workspace import (
    put_repository_into_workspace,
    share_repository_with_fork,
)
from activities.requirements.store_lifecycle import (
    update_store_after_fork,
    update_store_after_replacement,
)
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.starting.agent_resolution import (
    choose_agent_models,
    resolve_agent_tools,
    resolve_job_limits,
    resolve_learned_guards,
    resolve_server_tools,
    resolve_tool_routes,
)
from activities.starting.agent_skills import (
    REPOSITORY,
    add_repository_agent_skills,
    notice_untrusted_skills,
    read_agent_skills,
)
from activities.starting.fork import (
    begin_fork,
    copy_fork_origin,
    fetch_fork_origin,
    find_fork_origin,
    newest_fork_origin_phase,
    unforkable_job_error,
)
from activities.starting.repository_ownership import (
    check_forgotten_ownership,
    check_remote_ownership,
    claim_repository_ownership,
)
from activities.starting.search_attributes import registered_search_attributes
from activities.steps.notify import resolve_notify_recipients
from activities.steps.review_job import reviewer_tools
from activities.text.safe_text import text_title_line
from activities.toolkit.registry import Tool
from activities.toolkit.tool_offer import unoffered_tools
from activities.traces.recall import recall_traces
from config.agent_files import amend_agent_config, load_agent
from config.agent_overrides import overridden_agent_value
from config.schema.agent import AgentConfig, ConfigError
from config.templates import render_template
from protocol.job_state import JobState
from protocol.notification_requests import Notifying
from protocol.payloads import Fork
from protocol.phase import Phase
from protocol.prepare_requests import PrepareReply, PrepareRequest
from protocol.publishing import Publish
from protocol.repository_link import RepositoryLink
from protocol.repository_start import RepositoryStart
from protocol.scope_ledger import scope_from_texts, scope_size_fault

OF_ITS_OWN = (
    "This job works by itself: it is a fork of a job of project {project}, which takes nothing "
    "over from it."
)


@dataclass(frozen=True)
class PreparedJob:
    """Content of the first checkpoint."""

    snapshot: Snapshot
    tools: list[Tool]
    last_page: str = ""
    """Archive page of the previous phase, if there is one."""
    story: str = ""
    """Start of the checkpoint's commit message."""
    notices: list[str] = field(default_factory=list)
    """Messages for people, such as what the job has to do without."""
    notifying: Notifying | None = None


class PrepareActivity:
    """The `prepare` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="prepare")
    async def prepare(self, request: PrepareRequest) -> PrepareReply:
        """Resolve and pin the configuration, import the documents, begin the first phase."""
        with typed_failures():
            async with heartbeats():
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
        prepared = self._fork_job(request, fork, newest) if fork else self._start_new_job(request)
        snapshot, config, state = (
            prepared.snapshot,
            prepared.snapshot.config,
            prepared.snapshot.state,
        )
        traces = recall_traces(self._root, snapshot)
        state.unused_tools = unoffered_tools(
            snapshot.files, has_traces=bool(traces), may_ask=config.limits.clarifications > 0
        )
        snapshot.begin_conversation(*orientation_messages(snapshot, prepared.last_page, traces))
        notices = list(prepared.notices)
        if fork:
            notices += update_store_after_fork(self._root, snapshot, fork.job)
        notices += update_store_after_replacement(
            self._root, snapshot, _earlier_jobs_to_replace(snapshot)
        )
        timestamp = activity_schedule_time()
        story = f"{prepared.story}phase {state.phase.number} begins: {state.phase.name}"
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
            title=text_title_line(request.instructions or snapshot.read_text("instructions.md")),
            state=state.without_notes(),
            tools=add_handoff_proof_time(
                resolve_tool_routes(config, prepared.tools), snapshot.link
            ),
            context=count_prompt_tokens(snapshot),
            limits=resolve_job_limits(config),
            search_attributes=registered,
            notices=[*notices, *(f"moved to lost+found: {path}" for path in moved[:20])],
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

    def _start_new_job(self, request: PrepareRequest) -> PreparedJob:
        """Prepare a new job: its first files and the bootstrap phase."""
        config = load_agent(request.agent, request.set)
        resolve_learned_guards(self._root, config, request.project.id if request.project else "")
        choose_agent_models(config)
        check_result_schema(config)
        notices = resolve_server_tools(config) + check_remote_ownership(config, request)
        skills = read_agent_skills(config)
        tools = resolve_agent_tools(config)
        if config.reviewer:
            reviewer_tools(config.reviewer)
        notifying = None if request.project else resolve_notify_recipients([config])
        instructions = render_template(
            config.instructions_template, instructions=self._job_instructions(request)
        )
        if not instructions.strip():
            raise ConfigError(
                f"agent {config.name} has no instructions of its own: give some in `instructions`"
            )
        instructions = with_typed_result_rules(instructions, config)
        documents = read_input_documents(
            self._root,
            request.documents,
            config.limits.file_bytes,
            cache=self._project_cache(request),
            remote=config.workspace.remote,
        )
        notices += [line for document in documents for line in document.notices()]
        if config.needs_documents and not documents:
            raise ConfigError(
                f"agent {config.name} works on documents: name at least one in `documents`"
            )
        is_part = request.project is not None and request.project.divided
        scope = request.items or ([] if is_part else list_under_heading(instructions, "Scope"))
        checkpoints = self._claim_checkpoints(request, config)
        snapshot = Snapshot.start(
            checkpoints, config, _prepare_job_state(config, instructions, scope)
        )
        if request.repository:
            notices += self._bring_repository(request, request.repository, snapshot)
        with _report_prepare_problems(config):
            files = _prepare_tool_pages(snapshot.files, config, tools)
            files = files.write("instructions.md", instructions.encode())
            for document in documents:
                files = document.put_into(files)
            snapshot.files = skills.put_into(files)
            notices += skills.notices
        if config.todos.work:
            begin_configured_list(snapshot, 1)
        if request.project:
            prepare_handoff_workspace(self._root, snapshot, request.project)
        folder = request.project.folder if request.project else REPOSITORY
        if not config.trust_skills:
            notices += notice_untrusted_skills(snapshot.files, folder)
        else:
            notices += add_repository_agent_skills(snapshot, folder)
            tools = resolve_agent_tools(config)
            snapshot.files = _prepare_tool_pages(snapshot.files, config, tools)
        return PreparedJob(snapshot, tools, notices=notices, notifying=notifying)

    def _bring_repository(
        self, request: PrepareRequest, start: RepositoryStart, snapshot: Snapshot
    ) -> list[str]:
        """Fetch the repository and put it into the workspace; return messages for people."""
        if request.project:
            raise ConfigError("repository: a job of a project works on the project's; leave it out")
        owner, bounds = activity_job_id(), RepositoryBounds.of_agents(snapshot.config)
        remote = snapshot.config.workspace.remote or ""
        origin = fetch_pinned_repository(self._root, owner, start, bounds, remote)
        put_repository_into_workspace(self._root, snapshot, owner, origin, request.publish)
        notes = [*origin.notes, *self._push_start(owner, remote)]
        return [f"repository: {note}" for note in notes]

    def _push_start(self, owner: str, remote: str) -> list[str]:
        """Push the history that a job begins from; gives a note where it stays on this host."""
        try:
            push_start_to_project_remote(
                ProjectRepository(project_repository_path(self._root, owner)), owner, remote
            )
        except ApplicationError as away:
            # Checkpoints have the files, so the job itself can go on elsewhere.
            return [f"its history is on this host only. {away.message}"]
        return []

    def _project_cache(self, request: PrepareRequest) -> ResultCache | None:
        """Return the cache that the jobs of a project share; None outside a project."""
        if request.project is None:
            return None
        return ResultCache(project_repository_path(self._root, request.project.id))

    def _fork_job(self, request: PrepareRequest, fork: Fork, newest: int | None) -> PreparedJob:
        """Prepare a fork of another job at the start of a phase; see `activities.starting.fork`."""
        origin = find_fork_origin(self._root, fork, newest)
        pinned = origin.snapshot.config
        config = _prepare_fork_config(request, fork, pinned)
        # Keep the pinned tools of MCP servers unless the fork overrides `mcp`.
        notices = resolve_server_tools(config) if config.mcp != pinned.mcp else []
        notices += check_remote_ownership(config, request)
        skills = read_agent_skills(config) if config.skills != pinned.skills else None
        tools = resolve_agent_tools(config)
        notifying = None if request.project else resolve_notify_recipients([config])
        documents = read_input_documents(
            self._root,
            request.documents,
            config.limits.file_bytes,
            origin.document_names,
            self._project_cache(request),
            config.workspace.remote,
        )
        notices += [line for document in documents for line in document.notices()]

        owned = self._claim_checkpoints(request, config)
        if (brought := origin.snapshot.repository) is not None:
            owner = request.project.id if request.project else activity_job_id()
            notices += self._share_repository(brought, owner, owned, config.workspace.remote or "")
        snapshot = copy_fork_origin(origin, fork, owned)
        if snapshot.repository:
            publish = _prepare_fork_publish(request, snapshot.repository)
            update = {"owner": owner, "publish": publish}
            snapshot.repository = snapshot.repository.model_copy(update=update)
        elif request.publish:
            raise ConfigError(f"publish: job {fork.job!r} does not work on a repository")
        before = snapshot.files
        with _report_prepare_problems(config):
            instructions = self._job_instructions(request)
            if snapshot.link and not request.project:
                # A person forked a project's job: no project waits for it or judges its handoff.
                alone = OF_ITS_OWN.format(project=snapshot.link.id)
                instructions, snapshot.link = f"{alone}\n\n{instructions}", None
                notices = [*notices, alone]
            page = begin_fork(
                snapshot,
                config,
                instructions,
                request.items,
                documents,
                ended=origin.ended,
                # Work that a project rejected goes through all its steps again.
                repeats_list=request.project is not None,
            )
            if request.project:
                prepare_handoff_workspace(self._root, snapshot, request.project)
            if skills:
                snapshot.files = skills.put_into(snapshot.files)
                notices += skills.notices
            snapshot.files = _prepare_tool_pages(snapshot.files, config, tools)
            snapshot.files = with_workspace_summary(snapshot)
        snapshot.record_changes(before)
        began = f"forked from {fork.job} at {fork.place} · "
        return PreparedJob(snapshot, tools, page, began, notices, notifying)

    def _share_repository(
        self, link: RepositoryLink, owner: str, owned: Checkpoints, remote: str
    ) -> list[str]:
        """Give a fork the first job's repository, which a remote may have to bring here.

        Returns messages for people.
        """
        is_own = owner != link.owner
        if remote and is_own:
            open_remote_project(self._root, link.owner, remote, link.commit)
        share_repository_with_fork(self._root, link, owner, owned)
        if is_own and project_repository_path(self._root, owner).exists():
            return [f"repository: {note}" for note in self._push_start(owner, remote)]
        return []

    def _job_instructions(self, request: PrepareRequest) -> str:
        """Return the job's instructions; for a project's job, the rendered handoff."""
        if request.project is None:
            return request.instructions
        return render_handoff(self._root, request.project, again=request.fork is not None)

    def _claim_checkpoints(self, request: PrepareRequest, config: AgentConfig) -> Checkpoints:
        """Open the job's checkpoint repository, creating it if needed, and claim it."""
        check_forgotten_ownership(self._root)
        checkpoints = open_checkpoints(self._root, activity_job_id(), create=True)
        claim_repository_ownership(
            self._root,
            checkpoints.path,
            request.chain,
            project=request.project.id if request.project else "",
            keep_days=config.keep_days,
        )
        return checkpoints


def _prepare_fork_config(request: PrepareRequest, fork: Fork, pinned: AgentConfig) -> AgentConfig:
    """The first job's configuration with the fork's settings, checked. Raises ConfigError."""
    if request.agent not in ("", pinned.name):
        raise ConfigError(
            f"fork: job {fork.job!r} is done by agent {pinned.name}, and a fork keeps it: "
            "leave `agent` out"
        )
    config = amend_agent_config(pinned, request.set)
    check_result_schema(config)
    choose_agent_models(config)
    return config


def _prepare_fork_publish(request: PrepareRequest, link: RepositoryLink) -> Publish | None:
    """Return where the fork's branch is pushed; the original job's target does not apply."""
    try:
        return request.publish and request.publish.completed(link.origin.start)
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None


def _earlier_jobs_to_replace(snapshot: Snapshot) -> list[str]:
    """Return the earlier jobs that this one replaces.

    Empty for planners and testers: they are also started anew after their reports were accepted.
    """
    link = snapshot.link
    return link.earlier_jobs if link and not link.handoff.report else []


def _prepare_job_state(config: AgentConfig, instructions: str, scope: list[str]) -> JobState:
    items = scope_from_texts([text for text in scope if text.strip()])
    if why := scope_size_fault(items):
        raise ConfigError(why)
    return JobState(
        phase=Phase(
            number=1,
            kind="strategic",
            purpose="bootstrap",
            name=STRATEGIC_NAMES["bootstrap"],
            todos=predefined_todos(config, "bootstrap", instructions),
        ),
        scope=items,
    )


def _prepare_tool_pages(files: Files, config: AgentConfig, tools: list[Tool]) -> Files:
    """Return the files with the agent's folders and a page for each of its tools."""
    for folder in config.folders:
        files = files.make_folder(folder)
    if files.entry("tools"):
        files = files.delete("tools")
    for entry in tools:
        files = files.write(f"tools/{entry.name}.md", entry.page.encode())
    if config.result_schema is not None:
        files = files.write(SCHEMA_FILE, typed_result_schema_page(config))
    return files


@contextmanager
def _report_prepare_problems(config: AgentConfig) -> Iterator[None]:
    """Report files that a workspace refuses as mistakes in the start or in the configuration."""
    try:
        yield
    except (FilesError, PathRefused) as error:
        raise ConfigError(f"agent {config.name}: the workspace cannot be made. {error}") from None

"""The start of a job: everything checked before anything is made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from temporalio import activity

from activities.checkpoints import (
    Checkpoints,
    Files,
    FilesError,
    PathRefused,
    Root,
    open_checkpoints,
)
from activities.documents.inputs import read_documents
from activities.job.activity_context import attempt_key, check_root, job_id, scheduled_at
from activities.job.folder import settle
from activities.job.kept_results import KeptResults
from activities.job.plan_file import listed_under
from activities.job.snapshot import Snapshot
from activities.job.workspace_summary import with_summary
from activities.model.prompt import context_tokens
from activities.phases.orientation import first_messages
from activities.phases.predefined import STRATEGIC_NAMES, begin_own_list, predefined_todos
from activities.phases.tags import phase_tag
from activities.projects.handoff import hand_over, render_handoff, with_proof
from activities.projects.repository import repository_path
from activities.requirements.store_lifecycle import after_fork, instead_of
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats
from activities.starting.agent_resolution import (
    add_learned,
    choose_models,
    declare,
    limits_of,
    routes_of,
    tools_for,
)
from activities.starting.fork import begin, bring, copied, newest_phase, no_such_job, origin
from activities.starting.ownership import check_free, claim, join
from activities.starting.search_attributes import registered_attributes
from activities.steps.notify import notifying_of
from activities.steps.review_job import reviewer_tools
from activities.text.plain import title
from activities.toolkit.registry import Tool
from activities.toolkit.tool_offer import unused_tools
from activities.traces.recall import recalled
from config.loader import amend, load_agent, overridden
from config.schema.agent import AgentConfig, Problem
from config.templates import render
from protocol.notifications import Notifying
from protocol.payloads import Fork
from protocol.scope import given_items, too_large
from protocol.start import PrepareReply, PrepareRequest
from protocol.state import JobState, Phase

OF_ITS_OWN = (
    "This job works by itself: it is a fork of a job of project {project}, which takes nothing "
    "over from it."
)


@dataclass(frozen=True)
class Begun:
    """What the first checkpoint is made of."""

    snapshot: Snapshot
    tools: list[Tool]
    last_page: str = ""
    """Archive page of the phase before, where there is one."""
    story: str = ""
    """What the checkpoint's message begins with."""
    notices: list[str] = field(default_factory=list)
    """For people: what the job does without."""
    notifying: Notifying | None = None


class Preparation:
    """The `prepare` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="prepare")
    async def prepare(self, request: PrepareRequest) -> PrepareReply:
        """Resolve and pin the configuration, take the documents in, make the first phase."""
        with typed():
            async with heartbeats():
                if request.project and request.project.root:
                    check_root(self._root, request.project.root)
                fork = request.fork
                if fork:
                    remote = overridden(request.set, "workspace.remote")
                    await asyncio.to_thread(bring, self._root, fork, remote)
                if fork and not self._root.repository(fork.job).exists():
                    raise await no_such_job(activity.client(), self._root, fork.job)
                # A project has it from the job itself.
                newest = None
                if fork and not request.project:
                    newest = await newest_phase(activity.client(), fork.job)
                registered = await registered_attributes(activity.client())
                return await asyncio.to_thread(self._prepare, request, registered, newest)

    def _prepare(
        self, request: PrepareRequest, registered: list[str], newest: int | None
    ) -> PrepareReply:
        fork = request.fork
        begun = self._forked(request, fork, newest) if fork else self._first(request)
        snapshot, config, state = begun.snapshot, begun.snapshot.config, begun.snapshot.state
        traces = recalled(self._root, snapshot)
        state.unused_tools = unused_tools(
            snapshot.files, has_traces=bool(traces), may_ask=config.limits.clarifications > 0
        )
        snapshot.begin_conversation(*first_messages(snapshot, begun.last_page, traces))
        notices = list(begun.notices)
        if fork:
            notices += after_fork(self._root, snapshot, fork.job)
        notices += instead_of(self._root, snapshot, _not_taken_over(snapshot))
        at = scheduled_at()
        story = f"{begun.story}phase {state.phase.number} begins: {state.phase.name}"
        commit = snapshot.save(story, at)
        moved = settle(self._root, snapshot, phase_tag(state.phase.number), attempt_key())
        made = PrepareReply(
            commit=commit,
            at=at,
            root=self._root.id,
            agent=config.name,
            model=config.model.name,
            title=title(request.instructions or snapshot.text("instructions.md")),
            state=state.without_notes(),
            tools=with_proof(routes_of(config, begun.tools), snapshot.link),
            context=context_tokens(snapshot),
            limits=limits_of(config),
            search_attributes=registered,
            notices=[*notices, *(f"moved to lost+found: {path}" for path in moved[:20])],
        )
        if config.workspace.remote:
            made.remote = config.workspace.remote
        made.notifying = begun.notifying
        return made

    def _first(self, request: PrepareRequest) -> Begun:
        """A job from nothing: its first files and the bootstrap."""
        config = load_agent(request.agent, request.set)
        add_learned(self._root, config, request.project.id if request.project else "")
        choose_models(config)
        notices = declare(config) + join(config, request)
        tools = tools_for(config)
        if config.reviewer:
            reviewer_tools(config.reviewer)
        notifying = None if request.project else notifying_of([config])
        instructions = render(
            config.instructions_template, instructions=self._instructions(request)
        )
        if not instructions.strip():
            raise Problem(
                f"agent {config.name} has no instructions of its own: give some in `instructions`"
            )
        documents = read_documents(
            self._root, request.documents, config.limits.file_bytes, kept=self._kept(request)
        )
        notices += [line for document in documents for line in document.notices()]
        if config.needs_documents and not documents:
            raise Problem(
                f"agent {config.name} works on documents: name at least one in `documents`"
            )
        is_part = request.project is not None and request.project.divided
        scope = request.items or ([] if is_part else listed_under(instructions, "Scope"))
        checkpoints = self._own(request, config)
        snapshot = Snapshot.start(checkpoints, config, _first_state(config, instructions, scope))
        with _problems(config):
            files = _with_pages(snapshot.files, config, tools)
            files = files.write("instructions.md", instructions.encode())
            for document in documents:
                files = document.put_into(files)
            snapshot.files = files
        if config.todos.work:
            begin_own_list(snapshot, 1)
        if request.project:
            hand_over(self._root, snapshot, request.project)
        return Begun(snapshot, tools, notices=notices, notifying=notifying)

    def _kept(self, request: PrepareRequest) -> KeptResults | None:
        """What the jobs of a project have in common."""
        if request.project is None:
            return None
        return KeptResults(repository_path(self._root, request.project.id))

    def _forked(self, request: PrepareRequest, fork: Fork, newest: int | None) -> Begun:
        """A job from the start of a phase of another; see `activities.starting.fork`."""
        found = origin(self._root, fork, newest)
        pinned = found.snapshot.config
        if request.agent not in ("", pinned.name):
            raise Problem(
                f"fork: job {fork.job!r} is done by agent {pinned.name}, and a fork keeps it: "
                "leave `agent` out"
            )
        config = amend(pinned, request.set)
        choose_models(config)
        # What a server declared stays as it was pinned, like all that is not overridden.
        notices = declare(config) if config.mcp != pinned.mcp else []
        notices += join(config, request)
        tools = tools_for(config)
        notifying = None if request.project else notifying_of([config])
        documents = read_documents(
            self._root,
            request.documents,
            config.limits.file_bytes,
            found.document_names,
            self._kept(request),
        )
        notices += [line for document in documents for line in document.notices()]

        snapshot = copied(found, fork, self._own(request, config))
        before = snapshot.files
        with _problems(config):
            asked = self._instructions(request)
            if snapshot.link and not request.project:
                # A person's: nobody waits for it, and nobody is to hold it against that handoff.
                alone = OF_ITS_OWN.format(project=snapshot.link.id)
                asked, snapshot.link = f"{alone}\n\n{asked}", None
                notices = [*notices, alone]
            page = begin(snapshot, config, asked, request.items, documents, ended=found.ended)
            if request.project:
                hand_over(self._root, snapshot, request.project)
            snapshot.files = _with_pages(snapshot.files, config, tools)
            snapshot.files = with_summary(snapshot)
        snapshot.note_changes(before)
        return Begun(
            snapshot,
            tools,
            page,
            f"forked from {fork.job} at {fork.place} · ",
            notices,
            notifying,
        )

    def _instructions(self, request: PrepareRequest) -> str:
        """What the job was given; for a project's job, what was handed over to it."""
        if request.project is None:
            return request.instructions
        return render_handoff(self._root, request.project, again=request.fork is not None)

    def _own(self, request: PrepareRequest, config: AgentConfig) -> Checkpoints:
        """The job's own repository, made if need be and claimed."""
        check_free(self._root)
        checkpoints = open_checkpoints(self._root, job_id(), create=True)
        claim(
            self._root,
            checkpoints.path,
            request.chain,
            project=request.project.id if request.project else "",
            keep_days=config.keep_days,
        )
        return checkpoints


def _not_taken_over(snapshot: Snapshot) -> list[str]:
    """Jobs in the place of which this one begins. Who plans or tests is begun again as well after
    what it said was accepted."""
    link = snapshot.link
    return link.earlier_jobs if link and not link.handoff.report else []


def _first_state(config: AgentConfig, instructions: str, scope: list[str]) -> JobState:
    items = given_items([text for text in scope if text.strip()])
    if why := too_large(items):
        raise Problem(why)
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


def _with_pages(files: Files, config: AgentConfig, tools: list[Tool]) -> Files:
    """With the agent's folders and a page for each of its tools."""
    for folder in config.folders:
        files = files.make_folder(folder)
    if files.entry("tools"):
        files = files.delete("tools")
    for entry in tools:
        files = files.write(f"tools/{entry.name}.md", entry.page.encode())
    return files


@contextmanager
def _problems(config: AgentConfig) -> Iterator[None]:
    """What a workspace refuses is a mistake in the start or in the configuration."""
    try:
        yield
    except (FilesError, PathRefused) as error:
        raise Problem(f"agent {config.name}: the workspace cannot be made. {error}") from None

"""Ends one phase and begins the next, as one step from checkpoint to checkpoint.

In this order: archive the list, regenerate `workspace_summary.md`, put the next list into the state
(with `todos.yaml` moved into the archive), begin a fresh conversation, save one checkpoint. So the
next list exists before the old conversation goes, and there is no model call without an active
todo.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from temporalio import activity

from activities.checkpoints import Files, Root
from activities.job.activity_context import (
    activity_effect_key,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.job_folder import publish_checkpoint
from activities.job.plan_and_todo_files import (
    parse_agent_todo_file,
    parse_plan,
    plan_boxes,
    with_ticked_plan,
)
from activities.job.snapshot import Snapshot
from activities.job.workspace_summary import with_workspace_summary
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import count_prompt_tokens
from activities.model.reply_stream import StreamedReply
from activities.phases.archive import (
    archive_page,
    archive_phase,
    archive_prompt,
    archive_stem,
    with_undone_archive_pages,
)
from activities.phases.orientation import orientation_messages
from activities.phases.predefined_todos import (
    STRATEGIC_NAMES,
    complete_predefined_plan_todo,
    predefined_todos,
)
from activities.phases.tags import phase_tag
from activities.redaction.secrets import redact
from activities.requirements.store_lifecycle import update_store_after_rewind
from activities.runtime.failures import ATTEMPTS, may_retry_activity, typed_failure, typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.steps.tell import add_remarks_to_instructions
from activities.toolkit.tool_offer import unoffered_tools
from activities.traces.recall import recall_traces
from config.schema.agent import ConfigError
from protocol.endings import TransitionReply, TransitionRequest
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import complete_ticked_scope_items, scope_from_plan
from protocol.short_text import one_line, shorten_to_start
from protocol.todo_list import Todo
from protocol.usage import Usage

ISSUE_CHARACTERS = 500
"""Maximum length of an issue in Temporal's history."""


class TransitionActivity:
    """The `transition` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._model_client = ModelClient(root, connect)

    @activity.defn(name="transition")
    async def transition(self, request: TransitionRequest) -> TransitionReply:
        """End the running phase and begin the next."""
        with typed_failures(ATTEMPTS):
            async with heartbeats():
                needs_summary = request.outcome == "completed" and request.summary
                summary = await self._request_summary(request) if needs_summary else None
                return await asyncio.to_thread(self._change_phase, request, summary)

    async def _request_summary(self, request: TransitionRequest) -> StreamedReply | None:
        """Return the model's summary of the phase; None if it gives none, and the todos' notes
        serve.
        """

        def summary_question() -> ModelQuery:
            snapshot = open_activity_snapshot(self._root, request)
            return ModelQuery.with_own_prompt(snapshot, "archive_summary", archive_prompt(snapshot))

        return await self._model_client.request_summary(
            summary_question, lambda reply: reply, ".summary"
        )

    def _change_phase(
        self, request: TransitionRequest, summary: StreamedReply | None
    ) -> TransitionReply:
        snapshot = open_activity_snapshot(self._root, request)
        before = snapshot.files
        issue = request.issue
        if request.outcome == "rewound" and request.call is not None:
            issue = snapshot.text_argument(request.call, "issue")
        story = f"phase {snapshot.state.phase.number} {request.outcome}"
        last_page = _close_phase(snapshot, request, issue, summary)
        remarks: list[str] = []
        if request.restore is not None:
            _restore_phase_start(snapshot, request.restore, with_files=request.restore_files)
            if request.restore_files:
                remarks = update_store_after_rewind(self._root, snapshot)
        if request.purpose == "work":
            _take_scope_from_first_plan(snapshot)
        snapshot.state.rewinds = request.rewinds
        finished = snapshot.state.model_copy(deep=True)
        _enter_phase(snapshot.state, self._next_phase(snapshot, request))
        if request.outcome == "rewound":
            snapshot.state.issue = issue
        elif finished.phase.kind == "tactical":
            snapshot.state.issue = ""
        snapshot.files = _consume_todo_file(snapshot.files, snapshot.state.phase)
        snapshot.record_changes(before)
        written = snapshot.files
        given_up = request.outcome == "rewound"
        snapshot.files = with_workspace_summary(snapshot, finished, given_up=given_up)
        snapshot.record_changes(written)
        snapshot.shelve_conversation(finished.phase.number)
        traces = recall_traces(self._root, snapshot, issue)
        snapshot.state.unused_tools = unoffered_tools(
            snapshot.files, has_traces=bool(traces), may_ask=request.may_ask
        )
        messages = _opening_messages_of_phase(snapshot, request, last_page, traces)
        snapshot.begin_conversation(*messages)
        timestamp = activity_schedule_time()
        story += f" · phase {request.number} begins: {snapshot.state.phase.name}"
        commit = snapshot.save(story, timestamp)
        moved = publish_checkpoint(
            self._root, snapshot, phase_tag(request.number), activity_effect_key()
        )
        usage = priced_usage(summary, snapshot.config) if summary else Usage()
        # Count the call that ends the phase: it runs here.
        usage.tool_calls += int(request.call is not None)
        return TransitionReply(
            commit=commit,
            at=timestamp,
            state=snapshot.state.without_notes(),
            issue=one_line(redact(issue), ISSUE_CHARACTERS) if request.call is not None else "",
            usage=usage,
            context=count_prompt_tokens(snapshot),
            moved_aside=moved[:20],
            remarks=[shorten_to_start(redact(line), 500) for line in remarks[:5]],
        )

    def _next_phase(self, snapshot: Snapshot, request: TransitionRequest) -> Phase:
        phases = parse_plan(snapshot.read_text("plan.md"))
        position = next((n for n, phase in enumerate(phases, 1) if phase.is_open), len(phases))
        common: dict[str, Any] = {
            "number": request.number,
            "purpose": request.purpose,
            "plan_position": position,
            "plan_total": len(phases),
            "since": snapshot.state.step,
        }
        if request.purpose == "work":
            handed = parse_agent_todo_file(snapshot.read_bytes("todos.yaml"))
            return Phase(
                kind="tactical",
                name=handed.phase or f"Phase {request.number}",
                description=handed.description,
                todos=[
                    Todo(
                        id=todo.id or 0,
                        content=todo.content or "",
                        items=todo.items,
                        done_when=todo.done_when,
                    )
                    for todo in handed.todos
                ],
                **common,
            )
        page = f"{archive_stem(snapshot.state.phase)}.md"
        todos = predefined_todos(
            snapshot.config, request.purpose, snapshot.read_text("instructions.md"), page
        )
        if request.purpose == "transition":
            complete_predefined_plan_todo(todos, snapshot.state.phase, phases)
        return Phase(kind="strategic", name=STRATEGIC_NAMES[request.purpose], todos=todos, **common)


def _close_phase(
    snapshot: Snapshot,
    request: TransitionRequest,
    issue: str,
    summary: StreamedReply | None,
) -> str:
    """Complete todos, tick their boxes and archive the phase; return its archive page."""
    notes = "" if request.call is None else snapshot.text_argument(request.call, "notes")
    for todo in request.completes:
        snapshot.state.complete_todo(todo, notes)
    snapshot.files = with_ticked_plan(snapshot.files, snapshot.state.scope)
    page = archive_page(
        snapshot,
        request.outcome,
        issue,
        summary.text if summary else "",
        by=request.by,
        acts=request.acts,
    )
    snapshot.files = archive_phase(snapshot.files, snapshot.state.phase, page)
    return page.text


def _enter_phase(state: JobState, phase: Phase) -> None:
    state.phase = phase
    state.found_tools = []
    state.used_skills = []
    state.images = []


def _opening_messages_of_phase(
    snapshot: Snapshot, request: TransitionRequest, page: str, traces: Sequence[str]
) -> list[dict[str, Any]]:
    restored = request.restore is not None and request.restore_files
    try:
        return orientation_messages(snapshot, page, traces, restored=restored)
    except ConfigError as error:
        # The templates were valid when the job began, so probably a worker of another version
        # checked them; such a worker may take a later attempt.
        raise typed_failure(
            "Unforeseen",
            f"This worker cannot fill the prompts that the job began with, {error}. Those of "
            "another version need a worker of that version",
            retry=may_retry_activity(),
        ) from error


def _take_scope_from_first_plan(snapshot: Snapshot) -> None:
    """Use the boxes of the first plan as the scope of a job that started without one."""
    state = snapshot.state
    if not any(item.original for item in state.scope):
        state.scope = [
            *scope_from_plan(plan_boxes(parse_plan(snapshot.read_text("plan.md")))),
            *state.scope,
        ]


def _restore_phase_start(snapshot: Snapshot, commit: str, *, with_files: bool) -> None:
    """Restore the scope of a phase's start; also its files, except archive pages and lessons."""
    base = Snapshot.load(snapshot.checkpoints, commit)
    snapshot.state.scope = base.state.scope
    if with_files:
        since = base.state.phase.number
        lessons = snapshot.read_bytes("experiences.md")
        snapshot.files = with_undone_archive_pages(base.files, snapshot.files, since)
        if lessons is not None:
            snapshot.write_system_file("experiences.md", lessons)
        add_remarks_to_instructions(snapshot)
    else:
        # The plan stays. Follow its boxes now: ticked ones would not show as later changes.
        complete_ticked_scope_items(
            snapshot.state.scope, plan_boxes(parse_plan(snapshot.read_text("plan.md")))
        )


def _consume_todo_file(files: Files, phase: Phase) -> Files:
    """Remove `todos.yaml`, archiving it if it is the list of this phase."""
    if files.entry("todos.yaml") is None:
        return files
    if phase.purpose == "work":
        return files.write(
            f"archive/phase_{phase.number:03d}.yaml", files.read("todos.yaml")
        ).delete("todos.yaml")
    return files.delete("todos.yaml")

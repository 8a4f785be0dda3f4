"""Ends one phase and begins the next, as one step from checkpoint to checkpoint.

In this order: archive the list, regenerate `workspace_summary.md`, put the next list into the state
(with `todos.yaml` moved into the archive), begin a fresh conversation, save one checkpoint. So the
next list exists before the old conversation goes, and there is no model call without an active
todo.
"""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import (
    activity_effect_key,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.commit_messages import phase_message
from activities.job.job_folder import publish_checkpoint
from activities.job.workspace_summary import with_workspace_summary
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import count_prompt_tokens
from activities.model.reply_stream import StreamedReply
from activities.phases.archive import archive_prompt, archive_stem
from activities.phases.phase_tags import phase_tag
from activities.phases.snapshot_transition import (
    build_next_phase,
    close_phase,
    consume_todo_file,
    enter_phase,
    note_what_worked,
    opening_phase_messages,
    phase_mark,
    restore_phase_start,
    take_steps_from_plan,
)
from activities.phases.unread_output import unread_output
from activities.redaction.secrets import redact
from activities.requirements.store_sync import update_store_after_rewind
from activities.runtime.failures import ATTEMPTS, typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.toolkit.tool_offer import unoffered_tools
from activities.tools.tool_search import tools_for_list
from activities.traces.recall import recall_traces
from protocol.endings import TransitionReply, TransitionRequest
from protocol.short_text import one_line, shorten_to_start
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
                return await asyncio.to_thread(self._run_transition, request, summary)

    async def _request_summary(self, request: TransitionRequest) -> StreamedReply:
        """Return the model's summary of the phase; an empty one if it gives none, and the todos'
        notes serve.
        """

        def summary_question() -> ModelQuery:
            snapshot = open_activity_snapshot(self._root, request)
            return ModelQuery.with_own_prompt(snapshot, "archive_summary", archive_prompt(snapshot))

        return await self._model_client.request_summary(
            summary_question, lambda reply: reply, ".summary"
        )

    def _run_transition(
        self, request: TransitionRequest, summary: StreamedReply | None
    ) -> TransitionReply:
        snapshot = open_activity_snapshot(self._root, request)
        before = snapshot.files
        issue = request.issue
        if request.outcome == "rewound" and request.call is not None:
            issue = snapshot.text_argument(request.call, "issue")
        story = f"phase {snapshot.state.phase.number} {request.outcome}"
        last_page = close_phase(snapshot, request, issue, summary.text if summary else "")
        is_work, is_idle = snapshot.state.phase.purpose == "work", snapshot.state.is_list_idle
        mark = phase_mark(snapshot) if is_work else ""
        remarks: list[str] = []
        if request.restore is not None:
            restore_phase_start(snapshot, request.restore, with_files=request.restore_files)
            if request.restore_files:
                # The model reads that the page's todos are undone.
                last_page = snapshot.read_text(f"{archive_stem(snapshot.state.phase)}.md")
                remarks = update_store_after_rewind(self._root, snapshot)
        if request.purpose == "work":
            take_steps_from_plan(snapshot)
        snapshot.state.rewinds = request.rewinds
        finished = snapshot.state.model_copy(deep=True)
        enter_phase(snapshot.state, build_next_phase(snapshot, request))
        if request.outcome == "rewound":
            snapshot.state.issue = issue
        elif finished.phase.kind == "tactical":
            if snapshot.state.issue:
                note_what_worked(snapshot, finished.phase)
            snapshot.state.issue = ""
        snapshot.files = consume_todo_file(snapshot.files, snapshot.state.phase)
        snapshot.record_changes(before)
        written, unread = snapshot.files, unread_output(snapshot)
        given_up = request.outcome == "rewound"
        snapshot.files = with_workspace_summary(snapshot, finished, given_up=given_up)
        snapshot.record_changes(written)
        snapshot.shelve_conversation(finished.phase.number)
        traces = recall_traces(self._root, snapshot, issue)
        snapshot.state.unused_tools = unoffered_tools(
            snapshot.files, has_traces=bool(traces), may_ask=request.may_ask
        )
        snapshot.state.found_tools = tools_for_list(snapshot.config, snapshot.state)
        messages = opening_phase_messages(snapshot, request, last_page, traces)
        if unread:
            messages[-1]["content"] += f"\n\n{unread}"
        snapshot.begin_conversation(*messages)
        timestamp = activity_schedule_time()
        story += f" · {phase_message(request.number, snapshot.state.phase.name)}"
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
            mark=mark,
            idle=is_work and is_idle,
            moved_aside=moved[:20],
            remarks=[shorten_to_start(redact(line), 500) for line in remarks[:5]],
        )

"""Ends one phase and begins the next, as one step from checkpoint to checkpoint.

In this order: archive the list, regenerate `workspace_summary.md`, put the next list into the state
(with `todos.yaml` moved into the archive), begin a fresh conversation, save one checkpoint. So the
next list exists before the old conversation goes, and there is no model call without an active
todo.
"""

import asyncio

from temporalio import activity

from activities.job.activity_context import open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.job.workspace_summary import with_workspace_summary
from activities.model.client import ModelQuery
from activities.model.prices import priced_usage
from activities.model.prompt import count_prompt_tokens
from activities.model.reply_stream import StreamedReply
from activities.phases.archive import archive_prompt, archive_stem
from activities.phases.phase_outcome import (
    phase_brings_news,
    phase_mark,
    unread_phase_output,
    work_mark,
)
from activities.phases.snapshot_transition import (
    build_next_phase,
    close_phase,
    consume_todo_file,
    enter_phase,
    note_what_worked,
    opening_phase_messages,
    restore_phase_start,
    take_steps_from_plan,
)
from activities.redaction.secrets import redact
from activities.runtime.failures import ATTEMPTS
from activities.steps.phase_start import offer_phase_tools, save_phase_start
from activities.steps.root_activity import ModelActivity, async_step
from activities.tool_catalogue import EXTENSIONS
from protocol.endings import TransitionReply, TransitionRequest
from protocol.job_state import JobState
from protocol.short_text import one_line, shorten_to_start
from protocol.usage import Usage

ISSUE_CHARACTERS = 500


class TransitionActivity(ModelActivity):
    @activity.defn(name="transition")
    async def transition(self, request: TransitionRequest) -> TransitionReply:
        async with async_step(ATTEMPTS):
            needs_summary = request.outcome == "completed" and request.summary
            summary = await self._request_summary(request) if needs_summary else None
            return await asyncio.to_thread(self._run_transition, request, summary)

    async def _request_summary(self, request: TransitionRequest) -> StreamedReply:
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
        story = f"phase {snapshot.state.phase.number} {request.outcome} · "
        last_page = close_phase(snapshot, request, issue, summary.text if summary else "")
        mark, work, is_idle = "", "", False
        if snapshot.state.phase.purpose == "work":
            mark, work = phase_mark(snapshot), work_mark(snapshot)
            is_idle = not phase_brings_news(snapshot, request.began)
        remarks: list[str] = []
        if request.restore is not None:
            restore_phase_start(snapshot, request.restore, with_files=request.restore_files)
            if request.restore_files:
                # The model reads that the page's todos are undone.
                last_page = snapshot.read_text(f"{archive_stem(snapshot.state.phase)}.md")
                for extension in EXTENSIONS:
                    remarks += extension.follow_rewind(self._root, snapshot)
        finished = _enter_next_phase(snapshot, request, issue)
        snapshot.record_changes(before)
        self._begin_conversation(snapshot, request, finished, issue, last_page)
        timestamp, moved = save_phase_start(self._root, snapshot, story)
        usage = priced_usage(summary, snapshot.config) if summary else Usage()
        # Count the call that ends the phase: it runs here.
        usage.tool_calls += int(request.call is not None)
        return TransitionReply(
            commit=snapshot.commit,
            at=timestamp,
            state=snapshot.state.without_notes(),
            issue=one_line(redact(issue), ISSUE_CHARACTERS) if request.call is not None else "",
            usage=usage,
            context=count_prompt_tokens(snapshot),
            mark=mark,
            idle=is_idle,
            work=work,
            moved_aside=moved,
            remarks=[shorten_to_start(redact(line), 500) for line in remarks[:5]],
        )

    def _begin_conversation(
        self,
        snapshot: Snapshot,
        request: TransitionRequest,
        finished: JobState,
        issue: str,
        last_page: str,
    ) -> None:
        written, unread = snapshot.files, unread_phase_output(snapshot)
        given_up = request.outcome == "rewound"
        snapshot.files = with_workspace_summary(snapshot, finished, given_up=given_up)
        snapshot.record_changes(written)
        snapshot.shelve_conversation(finished.phase.number)
        traces = offer_phase_tools(self._root, snapshot, may_ask=request.may_ask, issue=issue)
        messages = opening_phase_messages(snapshot, request, last_page, traces)
        if unread:
            messages[-1]["content"] += f"\n\n{unread}"
        snapshot.begin_conversation(*messages)


def _enter_next_phase(snapshot: Snapshot, request: TransitionRequest, issue: str) -> JobState:
    """Put the next phase into the state; return the state as the last one left it."""
    if request.purpose == "work":
        take_steps_from_plan(snapshot)
    state = snapshot.state
    state.rewinds = request.rewinds
    finished = state.model_copy(deep=True)
    enter_phase(state, build_next_phase(snapshot, request))
    if request.outcome == "rewound":
        state.issue = issue
    elif finished.phase.kind == "tactical":
        if state.issue:
            note_what_worked(snapshot, finished.phase)
        state.issue = ""
    snapshot.files = consume_todo_file(snapshot.files, state.phase)
    finished.issue = state.issue
    return finished

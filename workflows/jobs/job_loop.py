"""The loop of a job: replies of the model, and the calls in them.

A step runs the next tool call of the current reply, or requests a reply from the model (`job.step`
counts replies). A step counts only once its checkpoint is known: the record changes after the
activity, never before, so a step that is given up half way leaves nothing behind.

A call passes these checks in this order; each can refuse it, and the model gets the reason:

    stuck rule   the phase goes in circles: in this turn only a rewind or completion is accepted
    reply rule   a guard refused the whole reply that the call is part of
    tool rule    the tool does not exist, or not in this kind of phase
    hold-back    the model has not read yet that an earlier call of the same reply failed, or
                 what a command of it printed
    limits       no room for the call: it is not refused, the job waits for a person
    gate         code that looks at the workspace, only for calls that end a phase or the job
    contract     a person approves the plan, and what its job leaves out, if the start asks for it
    guards       rules and programs of the agent's configuration; people can bypass a refusal once
    judge        a second model, if configured, only for the end of a phase
    review       a second agent, if configured, only for the end of the job
"""

from protocol.helpers import DELEGATE
from protocol.notices import Notice
from protocol.requests import Call, ModelReply
from protocol.usage import Usage
from workflows.jobs import guard_outcomes
from workflows.jobs.completion import Completion
from workflows.jobs.delegation import Delegation
from workflows.jobs.learning_notes import note_failure_reflection
from workflows.jobs.phase_end import PhaseEnd
from workflows.jobs.phase_transition import PhaseTransition
from workflows.jobs.rewind import Rewind
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import (
    compaction,
    course,
    endpoint_remedies,
    reservations,
    skipped_calls,
    stuck,
    text_replies,
    tool_rules,
)
from workflows.runtime import trace_notes
from workflows.runtime.activity_calls import count_unfinished_replies
from workflows.runtime.activity_failures import StepFailed


class JobLoop:
    """The rhythm of a job: replies, their tool calls, and the gates at the ends of phases."""

    def __init__(self, tool_calls: ToolCalls, transition: PhaseTransition) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._calls = tool_calls
        self._notice = tool_calls.notice
        self._delegation = Delegation(tool_calls)
        self._completion = Completion(tool_calls)
        self._phase_end = PhaseEnd(tool_calls, transition)
        self._rewind = Rewind(tool_calls, transition)

    async def step(self) -> None:
        """Run the next call of the current reply, or request a reply from the model."""
        job = self._job
        if lesson := job.inherited_failure:
            await note_failure_reflection(
                job, self._steps, self._calls.inbox, lesson, has_findings=True
            )
            job.inherited_failure = ""
        elif job.review:
            await self._completion.continue_review(job.review)
        elif job.next_call < len(job.calls):
            await self._dispatch_call(job.calls[job.next_call])
        elif job.calls and job.handed_over and job.end_tried_step != job.step:
            await self._phase_end.end_handed_over_phase()
        elif issue := stuck.overdue_stuck_rewind(job.course, job.step):
            await self._rewind.rewind_stuck_phase(issue)
        elif compaction.is_compaction_due(job):
            if not self._calls.park_without_room(reservations.compaction_reservation(job)):
                await self._compact_context()
        elif not self._calls.park_without_room(reservations.model_reply_reservation(job)):
            await self._request_reply()

    # Replies

    async def _request_reply(self) -> None:
        """Request a reply from the model, or see to it that the next request can succeed."""
        job = self._job
        try:
            reply = await self._steps.model_call(job)
        except StepFailed as failed:
            count_unfinished_replies(job, failed)
            if failed.kind == "ModelRefused" and text_replies.must_reply_with_call(job):
                # Perhaps the endpoint refuses only the forced call: ask once more without it.
                job.can_require_call = False
            elif compaction.may_be_too_long(failed, job):
                await self._shorten_refused_request(failed)
            else:
                if failed.kind == "ModelRefused" and job.hard_compactions:
                    failed.add_words("So did it after the context was compacted.")
                raise
        else:
            self._take_reply(reply)

    async def _shorten_refused_request(self, failed: StepFailed) -> None:
        """Compact a context that the endpoint refused as too long; raise if that cannot help."""
        job = self._job
        if not self._calls.park_without_room(reservations.compaction_reservation(job)):
            shortened = await self._compact_context(hard=True)
            if not shortened and not failed.by_fallback:
                raise failed
            job.hard_compactions = compaction.count_compaction(job, shortened=shortened)

    def _take_reply(self, reply: ModelReply) -> None:
        """Record a reply, whose calls are to be run next."""
        job = self._job
        job.hard_compactions = 0
        job.push_failure = reply.behind
        if reply.model:
            self._notice(Notice(text=f"the fallback {reply.model} answered", step=job.step + 1))
        job.advance_to(reply.commit, reply.at)
        job.step += 1
        job.state.step = job.step
        job.add_usage(reply.usage)
        job.add_usage(Usage(sent_calls=len(reply.calls) + reply.dropped))
        job.calls, job.next_call, job.failed_call, job.failed_command = reply.calls, 0, "", ""
        job.helpers = []
        job.correction, job.advice = text_replies.reply_correction(reply, job.state), ""
        job.person_edits = ""
        job.text_only_replies = 0 if reply.calls else job.text_only_replies + 1
        if not reply.calls:
            job.context = reply.context
            self._note_text_reply(reply)
        job.settle_reply(self._apply_reply_guards(reply))
        guard_outcomes.record_guard_trials(job, reply.trials, "a reply")
        self._calls.stuck_watch.record_reply(reply.calls)
        self._count_model_refusal(reply)

    def _note_text_reply(self, reply: ModelReply) -> None:
        """Record for people and for later jobs that a reply called no tool."""
        job = self._job
        job.refusals += 1
        happened = f"a reply called no tool ({reply.verdict or 'reports'})"
        if reply.verdict == "refuses":
            happened = f"the model refused: {reply.refused_words}"
            self._notice(Notice(text=happened, step=job.step))
        trace_notes.note_trace(
            job, "violation", "gate", "reply", happened, what_was_correct=job.correction or ""
        )

    def _count_model_refusal(self, reply: ModelReply) -> None:
        """Count refusals in a row; after some, the job waits for a person."""
        job = self._job
        job.refusing_replies = job.refusing_replies + 1 if reply.verdict == "refuses" else 0
        if job.refusing_replies == text_replies.MAX_REFUSING_REPLIES:
            job.waiting = endpoint_remedies.model_refusal_wait(
                reply.refused_words, job.refusing_replies
            )
            job.refusing_replies = 0

    def _apply_reply_guards(self, reply: ModelReply) -> str:
        """Return why a guard refuses all calls of a reply; empty if none does."""
        job = self._job
        if not reply.guard:
            return ""
        if reply.guard in job.bypasses:
            self._notice(guard_outcomes.use_guard_bypass(job, reply.guard, "a reply"))
            return ""
        job.correction = reply.refusal
        self._notice(
            guard_outcomes.record_guard_refusal(job, reply.guard, "a reply", reply.refusal)
        )
        return guard_outcomes.REPLY.format(refusal=reply.refusal)

    async def _compact_context(self, *, hard: bool = False) -> bool:
        """Compact the context: the model then sees its list, a summary and the rest.

        Returns:
            Whether the next request differs from the last one.
        """
        job = self._job
        reply = await self._steps.compact_context(job, hard=hard)
        job.advance_to(reply.commit, reply.at)
        job.context = job.compacted_context = reply.context
        job.add_usage(reply.usage)
        return not reply.unchanged

    # Calls

    async def _dispatch_call(self, call: Call) -> None:
        """Run a call, refuse it, or let it end its phase or the job."""
        job, kind, calls = self._job, self._job.state.phase.kind, self._calls
        route = job.route(call.tool)
        offered = [entry.name for entry in job.tools if kind in entry.phases]
        is_last_todo = call.tool == "todo_complete" and job.state.phase.open_count == 1
        if route and job.pending:  # begun in an earlier step: a server asked, or works on it
            await calls.resume_call(call, route)
        elif why := calls.stuck_watch.refusal_reason(call.tool):
            await calls.deny_call(call, "stuck", why)
        elif why := job.refused_replies.get(job.step):
            await calls.deny_call(call, "reply", why)
        elif route is None:
            await calls.deny_call(
                call, "tools", tool_rules.unknown_tool_refusal(call.tool, offered)
            )
        elif why := tool_rules.phase_tool_rule(route, kind):
            await calls.deny_call(call, "phase", why)
        elif call.tool in skipped_calls.COUNTED and job.failed_call:
            await calls.hold_back_call(call, route, job.failed_call)
        elif is_last_todo and skipped_calls.is_list_ended_later(job):
            await calls.skip_call(call, route, skipped_calls.ENDED_LATER)
        elif job.failed_command and (is_last_todo or call.tool == "job_complete"):
            await calls.hold_back_call(call, route, job.failed_command)
        elif calls.park_without_room(reservations.TOOL_CALL):
            return
        elif call.tool == DELEGATE:
            await self._delegation.delegate_call(call, route)
        elif call.tool == course.WAIT and call.seconds:
            await calls.wait_for_timer(call, route)
        elif call.tool == "request_clarification":
            await calls.answer_clarification(call, route)
        elif is_last_todo:
            await self._phase_end.end_phase(call, route)
        elif call.tool == "todo_rewind":
            await self._rewind.rewind_for_agent(call, route)
        elif call.tool == "job_complete":
            await self._completion.complete_job(call, route)
        else:
            await calls.run_call(call, route)

"""The phase loop: replies, their tool calls, and the gates that stand where a phase would end.

ToolCalls (a call) ← Completion (job_complete, review) ← Judging (the judge) ← PhaseLoop (a step)
"""

from __future__ import annotations

from typing import Any

from protocol.endings import TransitionRequest
from protocol.requests import Call, Usage
from protocol.state import Phase, Purpose
from protocol.tools import ToolRoute
from workflows import (
    activity_failures,
    budget,
    course,
    gates,
    guards,
    questions,
    remedies,
    replies,
    stuck,
    tool_rules,
    traces,
)
from workflows.activity_calls import position_fields
from workflows.activity_failures import StepFailed
from workflows.learning_notes import reflect_on_failure
from workflows.phase_judge import PhaseJudge

NO_SUMMARY = "no room in the limits for its summary; the notes on its todos take the place"


class PhaseLoop(PhaseJudge):
    """Moves a job on by one step at a time."""

    async def step(self) -> None:
        """Carry out the next call of the reply at hand, or ask the model for a reply."""
        job = self.job
        if lesson := job.inherited_failure:
            await reflect_on_failure(job, self.steps, self.notice, lesson)
            job.inherited_failure = ""
        elif job.review:
            await self._continue_review(job.review)
        elif job.next_call < len(job.calls):
            await self._dispatch_call(job.calls[job.next_call])
        elif job.calls and job.handed_over and job.end_tried_step != job.step:
            await self._end_handed_over_phase()
        elif issue := stuck.overdue_rewind(job.course, job.step):
            await self._force_rewind(issue)
        elif budget.compaction_is_due(job):
            if not self._park_without_room(budget.compaction_calls(job)):
                await self._compact_context()
        elif not self._park_without_room(budget.next_model_call(job)):
            await self._ask_model()

    async def _compact_context(self, *, hard: bool = False) -> None:
        """Make the context smaller; what the model then finds is its list, a summary, the rest."""
        job = self.job
        reply = await self.steps.compact_context(job, hard=hard)
        job.advance_to(reply.commit, reply.at)
        job.context = job.compacted_context = reply.context
        job.add_usage(reply.usage)

    def apply_limits(self, payload: dict[str, Any]) -> str | None:
        """Take new limits, and go on if the job waited for them; or say why they are not taken."""
        job = self.job
        limits = budget.changed_limits(job.limits, job.model, payload)
        if isinstance(limits, str):
            return limits
        job.limits = limits
        if job.waiting and job.waiting.reason == "budget":
            job.waiting = self.next_call_wait()
            if job.waiting:
                self.notice(
                    f"signal limit: taken, and there is still no room. {job.waiting.message}"
                )
        return None

    async def _ask_model(self) -> None:
        job = self.job
        try:
            reply = await self.steps.model_call(job)
        except StepFailed as failed:
            if failed.kind == "ModelRefused" and replies.must_call(job):
                job.can_require_call = False
                return
            if failed.kind != "ContextTooLong" or replies.is_compaction_exhausted(job):
                raise
            if not self._park_without_room(budget.compaction_calls(job)):
                await self._compact_context(hard=True)
                job.hard_compactions += 1
            return
        job.hard_compactions = 0
        job.push_failure = reply.behind
        if reply.model:
            self.notice(f"step {job.step + 1}: the fallback {reply.model} answered")
        job.advance_to(reply.commit, reply.at)
        job.step += 1
        job.state.step = job.step
        job.add_usage(reply.usage)
        job.add_usage(Usage(sent_calls=len(reply.calls) + reply.dropped))
        job.calls, job.next_call, job.failed_call, job.failed_command = reply.calls, 0, "", ""
        job.correction, job.advice = replies.reply_correction(reply, job.state), ""
        job.person_edits = ""
        job.text_only_replies = 0 if reply.calls else job.text_only_replies + 1
        if not reply.calls:
            job.context = reply.context
            job.refusals += 1
            happened = f"a reply called no tool ({reply.verdict or 'reports'})"
            correct = job.correction or ""
            traces.note_trace(job, "violation", "gate", "reply", happened, what_was_correct=correct)
        refusal = ""
        if reply.guard in job.bypasses:
            self.notice(guards.use_bypass(job, reply.guard, "a reply"))
        elif reply.guard:
            job.correction = reply.refusal
            refusal = guards.REPLY.format(refusal=reply.refusal)
            self.notice(guards.note_refusal(job, reply.guard, "a reply", reply.refusal))
        job.settle_reply(refusal)
        guards.note_trials(job, reply.trials, "a reply")
        self._record_course(course.after_reply(job.course, reply.calls))

    async def _dispatch_call(self, call: Call) -> None:
        job, kind = self.job, self.job.state.phase.kind
        route = job.route(call.tool)
        offered = [entry.name for entry in job.tools if kind in entry.phases]
        if route and job.pending:
            await self._take_up(call, route)
        elif why := stuck.narrowed_refusal(job.course, call.tool, self._todo_number):
            await self._deny_call(call, "stuck", why)
        elif why := job.refused_replies.get(job.step):
            await self._deny_call(call, "reply", why)
        elif route is None:
            await self._deny_call(call, "tools", tool_rules.unknown_tool(call.tool, offered))
        elif why := tool_rules.phase_rule(route, kind):
            await self._deny_call(call, "phase", why)
        elif call.tool in replies.COUNTED and job.failed_call:
            await self._hold_back_call(call, route, job.failed_call)
        elif (
            call.tool == "todo_complete" and job.failed_command and job.state.phase.open_count == 1
        ):
            await self._hold_back_call(call, route, job.failed_command)
        elif self._park_without_room(budget.TOOL_CALL):
            return
        elif call.tool == course.WAIT and call.seconds:
            await self._wait_for_timer(call, route)
        elif call.tool == "request_clarification":
            await self._answer_clarification(call, route)
        elif call.tool == "todo_complete" and job.state.phase.open_count == 1:
            await self._end_phase(call, route)
        elif call.tool == "todo_rewind":
            await self._rewind_asked_by_agent(call, route)
        elif call.tool == "job_complete":
            await self._complete_job(call, route)
        else:
            await self._run_call(call, route)

    async def _end_phase(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        facts = (await self.steps.read_gate_facts(job)).facts
        outcome = gates.phase_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            await self._refuse_call(call, route, "phase end", outcome.reason)
            return
        before = job.bypasses
        if await self._blocked_by_guards(call, route, ["todo_complete", "phase_end"]):
            return
        with guards.restoring_bypasses(job, before):
            if await self._blocked_by_judge(call, route):
                return
            if current := job.state.phase.current:
                self._note_covered_item(current)
            await self.change_phase(
                outcome.purpose, call=job.next_call, completes=list(outcome.completes)
            )

    async def _end_handed_over_phase(self) -> None:
        """End a strategic phase at the end of the reply in which all of it is done or seen done.

        What stands in the way is said with the next turn: `todo_complete` ends the phase then.
        """
        job = self.job
        if job.failed_call:
            job.end_tried_step = job.step
            job.add_correction(replies.NOT_OVER.format(failed=job.failed_call))
            return
        facts = (await self.steps.read_gate_facts(job)).facts
        if facts.todos_file == "missing":
            # The list was taken away again.
            job.handed_over = False
            return
        before = job.bypasses
        outcome = gates.handover_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            job.add_correction(outcome.reason)
        elif job.limits.judge and job.state.phase.kind in job.limits.judge.phases:
            job.add_correction(replies.BY_CALL)
        elif not await self._blocked_by_phase_guards(before):
            with guards.restoring_bypasses(job, before):
                await self.change_phase(outcome.purpose, completes=list(outcome.completes))
            return
        job.end_tried_step = job.step

    async def _blocked_by_phase_guards(self, before: dict[str, str]) -> bool:
        """Whether guards keep a phase that has handed over from ending.

        Args:
            before: The bypasses, which a person who is to be asked does not use up.
        """
        job = self.job
        route = job.route("todo_complete")
        if route is None or not route.guarded:
            return False
        ending = await self.steps.judge_ending(job, route, ["todo_complete", "phase_end"])
        if ending.asks:
            # A person is asked about calls: this one is still to be made.
            job.bypasses = before
            job.add_correction(replies.BY_CALL)
            return True
        for line in guards.apply_guard_outcome(job, ending, "the end of the phase", ending.refusal):
            self.notice(line)
        waiting = guards.count_undecided(job, ending, "todo_complete", ending.refusal)
        if waiting:
            await self._wait_for_person(waiting)
        if ending.refusal:
            job.refusals += 1
            job.add_correction(ending.refusal)
        return bool(ending.refusal)

    async def _rewind_asked_by_agent(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = activity_failures.REWINDS
            return
        facts = (await self.steps.read_gate_facts(job)).facts
        if facts.arguments_error:
            await self._run_call(call, route, facts.arguments_error)
            return
        before = job.bypasses
        if await self._blocked_by_guards(call, route, []):
            return
        with guards.restoring_bypasses(job, before):
            await reflect_on_failure(job, self.steps, self.notice, "", job.next_call)
            await self.change_phase("rewind", outcome="rewound", call=job.next_call)

    async def _force_rewind(self, issue: str) -> None:
        """The turn in which the model could have gone back, or on, is over."""
        job = self.job
        if remedies.has_never_called(job):
            job.waiting = remedies.without_calls(issue)
            return
        if job.rewinds >= job.limits.rewinds:
            job.waiting = activity_failures.REWINDS.model_copy(
                update={"message": f"{issue} The job has used up its rewinds."}
            )
            return
        await reflect_on_failure(job, self.steps, self.notice, issue)
        await self.change_phase("rewind", outcome="rewound", issue=issue)
        self.notice(f"stuck: went back. {issue}")

    async def change_phase(self, purpose: Purpose, **details: Any) -> None:
        """From the running phase to a new one, with the next number that was never used."""
        job, ended = self.job, self.job.state.phase
        await self.steps.give_up_task(job)
        rewinds = job.rewinds + (purpose == "rewind")
        request = TransitionRequest(
            **position_fields(job),
            number=job.last_phase + 1,
            purpose=purpose,
            rewinds=rewinds,
            **details,
        )
        request.may_ask = job.clarification.used < job.limits.clarifications
        is_long = job.phase_usage.model_calls > job.limits.summary_calls
        request.summary = request.outcome == "completed" and ended.kind == "tactical" and is_long
        if request.summary and budget.exceeded_limit(job, budget.summary_call(job)):
            request.summary = False
            self.notice(f"phase {job.state.phase.number}: {NO_SUMMARY}")
        reply = await self.steps.run_transition(job, request)
        self._note_outcome(ended, request, reply.issue)
        for dropped in questions.drop_questions(job):
            self.notice(dropped)
        job.advance_to(reply.commit, reply.at)
        job.state, job.rewinds = reply.state, rewinds
        job.last_phase = request.number
        job.phases[request.number] = reply.commit
        job.context = reply.context
        job.add_usage(reply.usage)
        not_run = replies.calls_not_run(job, request.call)
        job.begin_phase()
        job.correction = not_run
        self.inbox.moved_aside(reply.moved_aside)
        for remark in reply.remarks:
            self.notice(remark)

    def _note_outcome(self, ended: Phase, request: TransitionRequest, issue: str) -> None:
        """Note a failed attempt, and one that succeeds after it."""
        job = self.job
        if request.outcome == "rewound":
            job.last_failure = request.issue or issue
            happened = f"phase {ended.number} ({ended.name}) was rewound"
            traces.note_trace(job, "outcome", "gate", "rewind", happened, why=job.last_failure)
        elif job.last_failure and ended.kind == "tactical":
            happened = f"phase {ended.number} ({ended.name}) was completed after a failure"
            traces.note_trace(job, "outcome", "gate", "phase", happened, why=job.last_failure)
            job.last_failure = ""

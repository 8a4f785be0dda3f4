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
    budget,
    course,
    gates,
    guards,
    parking,
    questions,
    remedies,
    replies,
    stuck,
    tool_rules,
    traces,
)
from workflows.activity_calls import position
from workflows.judging import Judging
from workflows.lessons import reflect
from workflows.parking import StepFailed

NO_SUMMARY = "no room in the limits for its summary; the notes on its todos take the place"


class PhaseLoop(Judging):
    """Moves a job on by one step at a time."""

    async def step(self) -> None:
        """Carry out the next call of the reply at hand, or ask the model for a reply."""
        job = self.job
        if lesson := job.lesson:
            await reflect(job, self.steps, self.notice, lesson)
            job.lesson = ""
        elif job.review:
            await self._go_on_reviewing(job.review)
        elif job.next_call < len(job.calls):
            await self._carry_out(job.calls[job.next_call])
        elif job.calls and job.handed_over and job.end_tried != job.step:
            await self._end_handed_over()
        elif issue := stuck.overdue(job.course, job.step):
            await self._force_rewind(issue)
        elif budget.compaction_is_due(job):
            if not self._parked(budget.compaction(job)):
                await self._compact()
        elif not self._parked(budget.next_model_call(job)):
            await self._ask_model()

    async def _compact(self, *, hard: bool = False) -> None:
        """Make the context smaller; what the model then finds is its list, a summary, the rest."""
        job = self.job
        made = await self.steps.compact(job, hard=hard)
        job.move_to(made.commit, made.at)
        job.context = job.compacted = made.context
        job.spend(made.usage)

    def limit(self, payload: dict[str, Any]) -> str | None:
        """Take new limits, and go on if the job waited for them; or say why they are not taken."""
        job = self.job
        limits = budget.changed(job.limits, job.model, payload)
        if isinstance(limits, str):
            return limits
        job.limits = limits
        if job.waiting and job.waiting.reason == "budget":
            job.waiting = self.no_room()
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
                job.may_demand = False
                return
            if failed.kind != "ContextTooLong" or replies.is_squeezed(job):
                raise
            if not self._parked(budget.compaction(job)):
                await self._compact(hard=True)
                job.squeezed += 1
            return
        job.squeezed = 0
        job.behind = reply.behind
        if reply.model:
            self.notice(f"step {job.step + 1}: the fallback {reply.model} answered")
        job.move_to(reply.commit, reply.at)
        job.step += 1
        job.state.step = job.step
        job.spend(reply.usage)
        job.spend(Usage(sent_calls=len(reply.calls) + reply.dropped))
        job.calls, job.next_call, job.failed_call, job.unread = reply.calls, 0, "", ""
        job.correction, job.advice = replies.correction(reply, job.state), ""
        job.edits = ""
        job.wordy = 0 if reply.calls else job.wordy + 1
        if not reply.calls:
            job.context = reply.context
            job.refusals += 1
            happened = f"a reply called no tool ({reply.verdict or 'reports'})"
            correct = job.correction or ""
            traces.note(job, "violation", "gate", "reply", happened, what_was_correct=correct)
        refusal = ""
        if reply.guard in job.bypasses:
            self.notice(guards.passed_over(job, reply.guard, "a reply"))
        elif reply.guard:
            job.correction = reply.refusal
            refusal = guards.REPLY.format(refusal=reply.refusal)
            self.notice(guards.refused(job, reply.guard, "a reply", reply.refusal))
        job.settle_reply(refusal)
        guards.tried(job, reply.trials, "a reply")
        self._watch(course.after_reply(job.course, reply.calls))

    async def _carry_out(self, call: Call) -> None:
        job, kind = self.job, self.job.state.phase.kind
        route = job.route(call.tool)
        offered = [entry.name for entry in job.tools if kind in entry.phases]
        if route and job.pending:
            await self._take_up(call, route)
        elif why := stuck.not_now(job.course, call.tool, self._todo):
            await self._deny(call, "stuck", why)
        elif why := job.refused_replies.get(job.step):
            await self._deny(call, "reply", why)
        elif route is None:
            await self._deny(call, "tools", tool_rules.unknown_tool(call.tool, offered))
        elif why := tool_rules.phase_rule(route, kind):
            await self._deny(call, "phase", why)
        elif call.tool in replies.COUNTED and job.failed_call:
            await self._hold_back(call, route, job.failed_call)
        elif call.tool == "todo_complete" and job.unread and job.state.phase.open_count == 1:
            await self._hold_back(call, route, job.unread)
        elif self._parked(budget.TOOL_CALL):
            return
        elif call.tool == course.WAIT and call.seconds:
            await self._wait(call, route)
        elif call.tool == "request_clarification":
            await self._clarify(call, route)
        elif call.tool == "todo_complete" and job.state.phase.open_count == 1:
            await self._end_phase(call, route)
        elif call.tool == "todo_rewind":
            await self._rewind_asked_by_agent(call, route)
        elif call.tool == "job_complete":
            await self._complete(call, route)
        else:
            await self._run(call, route)

    async def _end_phase(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        facts = (await self.steps.facts(job)).facts
        outcome = gates.phase_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            await self._refuse(call, route, "phase end", outcome.reason)
            return
        before = job.bypasses
        if await self._kept_from(call, route, ["todo_complete", "phase_end"]):
            return
        with guards.passed_by(job, before):
            if await self._judged(call, route):
                return
            if current := job.state.phase.current:
                self._tell_what_counts(current)
            await self.turn(outcome.purpose, call=job.next_call, completes=list(outcome.completes))

    async def _end_handed_over(self) -> None:
        """End a strategic phase at the end of the reply in which all of it is done or seen done.

        What stands in the way is said with the next turn: `todo_complete` ends the phase then.
        """
        job = self.job
        if job.failed_call:
            job.end_tried = job.step
            job.correct(replies.NOT_OVER.format(failed=job.failed_call))
            return
        facts = (await self.steps.facts(job)).facts
        if facts.todos_file == "missing":
            # The list was taken away again.
            job.handed_over = False
            return
        before = job.bypasses
        outcome = gates.handover_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            job.correct(outcome.reason)
        elif job.limits.judge and job.state.phase.kind in job.limits.judge.phases:
            job.correct(replies.BY_CALL)
        elif not await self._keeps_going(before):
            with guards.passed_by(job, before):
                await self.turn(outcome.purpose, completes=list(outcome.completes))
            return
        job.end_tried = job.step

    async def _keeps_going(self, before: dict[str, str]) -> bool:
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
            job.correct(replies.BY_CALL)
            return True
        for line in guards.heed(job, ending, "the end of the phase", ending.refusal):
            self.notice(line)
        waiting = guards.count_undecided(job, ending, "todo_complete", ending.refusal)
        if waiting:
            await self._wait_for_person(waiting)
        if ending.refusal:
            job.refusals += 1
            job.correct(ending.refusal)
        return bool(ending.refusal)

    async def _rewind_asked_by_agent(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = parking.REWINDS
            return
        facts = (await self.steps.facts(job)).facts
        if facts.arguments_error:
            await self._run(call, route, facts.arguments_error)
            return
        before = job.bypasses
        if await self._kept_from(call, route, []):
            return
        with guards.passed_by(job, before):
            await reflect(job, self.steps, self.notice, "", job.next_call)
            await self.turn("rewind", outcome="rewound", call=job.next_call)

    async def _force_rewind(self, issue: str) -> None:
        """The turn in which the model could have gone back, or on, is over."""
        job = self.job
        if remedies.has_never_called(job):
            job.waiting = remedies.without_calls(issue)
            return
        if job.rewinds >= job.limits.rewinds:
            job.waiting = parking.REWINDS.model_copy(
                update={"message": f"{issue} The job has used up its rewinds."}
            )
            return
        await reflect(job, self.steps, self.notice, issue)
        await self.turn("rewind", outcome="rewound", issue=issue)
        self.notice(f"stuck: went back. {issue}")

    async def turn(self, purpose: Purpose, **details: Any) -> None:
        """From the running phase to a new one, with the next number that was never used."""
        job, ended = self.job, self.job.state.phase
        await self.steps.give_up_task(job)
        rewinds = job.rewinds + (purpose == "rewind")
        request = TransitionRequest(
            **position(job),
            number=job.last_phase + 1,
            purpose=purpose,
            rewinds=rewinds,
            **details,
        )
        request.may_ask = job.clarification.used < job.limits.clarifications
        is_long = job.phase_usage.model_calls > job.limits.summary_calls
        request.summary = request.outcome == "completed" and ended.kind == "tactical" and is_long
        if request.summary and budget.over(job, budget.summary_call(job)):
            request.summary = False
            self.notice(f"phase {job.state.phase.number}: {NO_SUMMARY}")
        turned = await self.steps.transition(job, request)
        self._note_outcome(ended, request, turned.issue)
        for dropped in questions.drop(job):
            self.notice(dropped)
        job.move_to(turned.commit, turned.at)
        job.state, job.rewinds = turned.state, rewinds
        job.last_phase = request.number
        job.phases[request.number] = turned.commit
        job.context = turned.context
        job.spend(turned.usage)
        not_run = replies.not_run(job, request.call)
        job.begin_phase()
        job.correction = not_run
        self.inbox.moved_aside(turned.moved_aside)
        for remark in turned.remarks:
            self.notice(remark)

    def _note_outcome(self, ended: Phase, request: TransitionRequest, issue: str) -> None:
        """Note a failed attempt, and one that succeeds after it."""
        job = self.job
        if request.outcome == "rewound":
            job.failed = request.issue or issue
            happened = f"phase {ended.number} ({ended.name}) was rewound"
            traces.note(job, "outcome", "gate", "rewind", happened, why=job.failed)
        elif job.failed and ended.kind == "tactical":
            happened = f"phase {ended.number} ({ended.name}) was completed after a failure"
            traces.note(job, "outcome", "gate", "phase", happened, why=job.failed)
            job.failed = ""

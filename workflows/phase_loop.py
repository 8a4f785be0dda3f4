"""The phase loop: replies, their tool calls, and the gates that stand where a phase would end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import workflow

from protocol.record import JobRecord, Waiting
from protocol.requests import Call, Point, TransitionRequest, Usage
from protocol.state import Purpose
from protocol.tools import ToolRoute
from workflows import budget, gates, guards, parking
from workflows.parking import StepFailed
from workflows.steps import Steps

MAX_SQUEEZES = 4
"""Compactions in a row on the endpoint's word that the request is too long."""
CUT_SHORT = (
    "Your last reply was cut at the output limit. Say less and act: do todo {todo} with a tool, in "
    "smaller pieces."
)
NO_ACTION = (
    "Your last reply called no tool. Do todo {todo} with a tool, or call todo_complete when it is "
    "done."
)
NO_SUMMARY = "no room in the limits for its summary; the notes on its todos take the place"


def compaction_is_due(job: JobRecord) -> bool:
    """Whether the next request would be too large, and compacting again can make it smaller."""
    grown = job.context - job.compacted
    return job.context >= job.context_limit and grown > job.context_limit // 10


class PhaseLoop:
    """Moves a job on by one step at a time.

    What a step made counts only once its checkpoint is known: the record changes after the
    activity, never before, so that a step given up half way leaves nothing behind.
    """

    def __init__(self, job: JobRecord, steps: Steps, notice: Callable[[str], None]) -> None:
        self.job = job
        self.steps = steps
        self.notice = notice

    async def step(self) -> None:
        """Carry out the next call of the reply at hand, or ask the model for a reply."""
        job = self.job
        if job.next_call < len(job.calls):
            await self._carry_out(job.calls[job.next_call])
        elif compaction_is_due(job):
            if not self._parked(budget.compaction(job)):
                await self._compact()
        elif not self._parked(budget.next_model_call(job)):
            await self._ask_model()

    async def _compact(self, *, hard: bool = False) -> None:
        """Make the context smaller; what the model then finds is its list, a summary, the rest."""
        job = self.job
        made = await self.steps.compact(job, hard=hard)
        job.move_to(made.commit)
        job.at = made.at
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

    def no_room(self) -> Waiting | None:
        """How the job waits if the limits leave no room for its next call, else None."""
        job = self.job
        calls = job.next_call < len(job.calls)
        return _no_room(job, budget.TOOL_CALL if calls else budget.next_model_call(job))

    def _parked(self, reservation: budget.Reservation) -> bool:
        """Park the job if the limits leave no room for a call."""
        if waiting := _no_room(self.job, reservation):
            self.job.waiting = waiting
        return waiting is not None

    async def _ask_model(self) -> None:
        job = self.job
        try:
            reply = await self.steps.model_call(job)
        except StepFailed as failed:
            if failed.kind != "ContextTooLong" or job.squeezed >= MAX_SQUEEZES:
                raise
            await self._compact(hard=True)
            job.squeezed += 1
            return
        job.squeezed = 0
        if reply.model:
            self.notice(f"step {job.step + 1}: the fallback {reply.model} answered")
        job.move_to(reply.commit)
        job.at = reply.at
        job.step += 1
        job.state.step = job.step
        job.spend(reply.usage)
        job.calls, job.next_call = reply.calls, 0
        todo = job.state.phase.current
        job.correction = None
        if not reply.calls:
            job.context = reply.context
            said = CUT_SHORT if reply.finish == "length" else NO_ACTION
            job.correction = said.format(todo=todo.id if todo else "")
        job.reply_refused = ""
        if reply.guard in job.bypasses:
            self.notice(guards.passed_over(job, reply.guard, "a reply"))
        elif reply.guard:
            job.correction = reply.refusal
            job.reply_refused = guards.REPLY.format(refusal=reply.refusal)
            job.refusals += not reply.calls
            self.notice(guards.refused(job, reply.guard, "a reply", reply.refusal))

    async def _carry_out(self, call: Call) -> None:
        job, kind = self.job, self.job.state.phase.kind
        route = job.route(call.tool)
        offered = [entry.name for entry in job.tools if kind in entry.phases]
        if job.reply_refused:
            await self._deny(call, job.reply_refused)
        elif route is None:
            await self._deny(call, gates.unknown_tool(call.tool, offered))
        elif why := gates.phase_rule(route, kind):
            await self._deny(call, why)
        elif call.tool == "todo_complete" and job.state.phase.open_count == 1:
            await self._end_phase(call, route)
        elif call.tool == "todo_rewind":
            await self._rewind_asked_by_agent(call, route)
        elif call.tool == "job_complete":
            await self._complete(call, route)
        else:
            await self._run(call, route)

    async def _run(self, call: Call, route: ToolRoute, refusal: str | None = None) -> None:
        """Run a tool call, or record that a gate refused it."""
        job = self.job
        if self._parked(budget.TOOL_CALL):
            return
        reply = await self.steps.tool(job, call, route, refusal)
        for line in guards.heed(job, reply, call.tool, reply.error or reply.asks):
            self.notice(line)
        if reply.asks:
            await self._run(call, route, guards.UNANSWERED.format(asks=reply.asks))
            return
        job.move_to(reply.commit)
        if not route.local and not refusal:
            job.at = reply.at
        job.context = reply.context
        job.spend(Usage(tool_calls=1))
        if refusal or reply.guard:
            job.refusals += 1
        job.next_call = len(job.calls) if route.ends_reply else job.next_call + 1
        if reply.ok and call.tool == "todo_complete" and (todo := job.state.phase.current):
            job.state.complete_todo(todo.id)

    async def _deny(self, call: Call, why: str) -> None:
        job = self.job
        reply = await self.steps.deny(job, call, why)
        job.move_to(reply.commit)
        job.context = reply.context
        job.refusals += 1
        job.next_call += 1

    async def _end_phase(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        facts = (await self.steps.facts(job)).facts
        outcome = gates.phase_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            await self._run(call, route, outcome.reason)
            return
        if await self._kept_from(call, route, ["todo_complete", "phase_end"]):
            return
        current = job.state.phase.current
        await self.turn(
            outcome.purpose, call=job.next_call, completes=current.id if current else None
        )

    async def _complete(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        facts = (await self.steps.facts(job)).facts
        if refusal := gates.completion_gate(facts):
            await self._run(call, route, refusal.reason)
            return
        if await self._kept_from(call, route, ["job_complete"]):
            return
        closed = await self.steps.close(job, "completed", call=job.next_call)
        job.move_to(closed.commit)
        for todo in job.state.phase.todos:
            todo.done = True
        job.result = closed.result

    async def _rewind_asked_by_agent(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = parking.REWINDS
            return
        facts = (await self.steps.facts(job)).facts
        if facts.arguments_error:
            await self._run(call, route, facts.arguments_error)
            return
        if await self._kept_from(call, route, []):
            return
        await self.turn("rewind", outcome="rewound", call=job.next_call)

    async def _kept_from(self, call: Call, route: ToolRoute, points: list[Point]) -> bool:
        """Whether guards or hooks refuse a call whose gate has passed; it is then recorded."""
        job = self.job
        if not route.guarded:
            return False
        ending = await self.steps.judge_ending(job, route, points)
        why = ending.refusal
        if ending.asks:
            why = guards.UNANSWERED.format(asks=ending.asks)
        for line in guards.heed(job, ending, call.tool, why):
            self.notice(line)
        if why:
            job.stop_hook_active = "job_complete" in points
            await self._run(call, route, why)
        return bool(why)

    async def turn(self, purpose: Purpose, **details: Any) -> None:
        """From the running phase to a new one, with the next number that was never used."""
        job = self.job
        rewinds = job.rewinds + (purpose == "rewind")
        request = TransitionRequest(
            **self.steps.at(job),
            number=job.last_phase + 1,
            purpose=purpose,
            rewinds=rewinds,
            **details,
        )
        if request.outcome == "completed" and budget.over(job, budget.summary_call(job)):
            request.summary = False
            self.notice(f"phase {job.state.phase.number}: {NO_SUMMARY}")
        turned = await self.steps.transition(job, request)
        job.move_to(turned.commit)
        job.at, job.state, job.rewinds = turned.at, turned.state, rewinds
        job.last_phase = request.number
        job.phases[request.number] = turned.commit
        job.context, job.compacted, job.squeezed = turned.context, 0, 0
        job.spend(turned.usage)
        job.begin_phase()
        job.calls, job.next_call, job.correction = [], 0, None
        job.stop_hook_active = False
        for path in turned.moved_aside:
            self.notice(f"moved to lost+found: {path}")


def _no_room(job: JobRecord, reservation: budget.Reservation) -> Waiting | None:
    over = budget.over(job, reservation)
    return over.waiting(workflow.info().workflow_id) if over else None

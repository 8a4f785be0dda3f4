"""The phase loop: replies, their tool calls, and the gates that stand where a phase would end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import workflow

from protocol.course import Course
from protocol.record import JobRecord, Review, Waiting
from protocol.requests import Call, Point, ReviewLimits, TransitionRequest, Usage
from protocol.state import Purpose, Todo
from protocol.tools import ToolRoute
from workflows import budget, course, gates, guards, parking, questions, replies, stuck
from workflows.parking import StepFailed
from workflows.steps import Steps

MAX_SQUEEZES = 4
"""Compactions in a row on the endpoint's word that the request is too long."""
SENT_BACK = "The review sent the job back: {findings}\nMend this, then call job_complete again."
UNDECIDED = (
    "the reviewer gave no verdict in {calls} replies, which counts as no. Make it plain in the "
    "summary and notes of job_complete where each thing that was asked for can be found."
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

    def __init__(
        self,
        job: JobRecord,
        steps: Steps,
        notice: Callable[[str], None],
        has_letters: Callable[[], bool],
    ) -> None:
        self.job = job
        self.job_id = workflow.info().workflow_id
        self.steps = steps
        self.notice = notice
        self.has_letters = has_letters

    async def step(self) -> None:
        """Carry out the next call of the reply at hand, or ask the model for a reply."""
        job = self.job
        if job.review:
            await self._go_on_reviewing(job.review)
        elif job.next_call < len(job.calls):
            await self._carry_out(job.calls[job.next_call])
        elif issue := stuck.overdue(job.course, job.step):
            await self._force_rewind(issue)
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
        return _no_room(self.job, budget.next_call(self.job))

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
            if failed.kind == "ModelRefused" and replies.must_call(job):
                job.may_demand = False
                return
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
        job.correction = replies.correction(reply, job.state.phase.current)
        job.wordy = 0 if reply.calls else job.wordy + 1
        if not reply.calls:
            job.context = reply.context
            job.refusals += 1
        job.reply_refused = ""
        if reply.guard in job.bypasses:
            self.notice(guards.passed_over(job, reply.guard, "a reply"))
        elif reply.guard:
            job.correction = reply.refusal
            job.reply_refused = guards.REPLY.format(refusal=reply.refusal)
            self.notice(guards.refused(job, reply.guard, "a reply", reply.refusal))
        self._watch(course.after_reply(job.course, reply.calls))

    async def _carry_out(self, call: Call) -> None:
        job, kind = self.job, self.job.state.phase.kind
        route = job.route(call.tool)
        offered = [entry.name for entry in job.tools if kind in entry.phases]
        if why := stuck.not_now(job.course, call.tool, self._todo):
            await self._deny(call, why)
        elif job.reply_refused:
            await self._deny(call, job.reply_refused)
        elif route is None:
            await self._deny(call, gates.unknown_tool(call.tool, offered))
        elif why := gates.phase_rule(route, kind):
            await self._deny(call, why)
        elif route.asks and not await self.ask_person(
            call, route, questions.CONFIGURED, guard="approve"
        ):
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

    async def ask_person(self, call: Call, route: ToolRoute, question: str, *, guard: str) -> bool:
        """Whether a person approves the call at hand.

        Until somebody has spoken the job is parked, and the call comes up again when it goes on. A
        denial is recorded as the call's result here.

        Args:
            question: What the person is asked, beside the call and its arguments.
            guard: Who asks: the guard's name.
        """
        job = self.job
        asked = questions.approval_at_hand(job)
        if asked is None:
            shown = await self.steps.show_call(job)
            if shown.error:
                await self._run(call, route, shown.error)
                return False
            questions.request_approval(job, call.tool, shown, question, guard)
            asked = questions.approval_at_hand(job)
        if asked and asked.approved is None:
            job.waiting = questions.waiting_for_approval(asked, self.job_id)
        elif asked and asked.approved is False:
            await self._run(call, route, questions.denied(asked))
        return bool(asked and asked.approved)

    async def _clarify(self, call: Call, route: ToolRoute) -> None:
        """Put the agent's question to people, or give it the answer they gave."""
        job = self.job
        asked = job.clarification
        if asked.pending is None and asked.used < job.limits.clarifications:
            shown = await self.steps.show_call(job)
            if shown.error:
                await self._run(call, route, shown.error)
                return
            questions.ask(job, shown, workflow.time())
        if pending := asked.pending:
            if pending.answer is None:
                job.waiting = questions.waiting_for_answer(pending, self.job_id)
                return
            if await self._run(call, route, answer=pending.answer):
                asked.pending = None
                asked.resolved += 1
        else:
            await self._run(call, route, answer=questions.ENOUGH)

    async def _run(
        self,
        call: Call,
        route: ToolRoute,
        refusal: str | None = None,
        *,
        answer: str | None = None,
    ) -> bool:
        """Run a tool call, or record what it was answered or why a gate refused it.

        Returns:
            False when the limits leave no room for it: the job waits, and the call comes up again.
        """
        job = self.job
        if self._parked(budget.TOOL_CALL):
            return False
        reply = await self.steps.tool(job, call, route, refusal, answer, approved=self._approved)
        if reply.asks:
            await self.ask_person(call, route, reply.asks, guard=reply.guard)
            return False
        for line in guards.heed(job, reply, call.tool, reply.error or ""):
            self.notice(line)
        job.move_to(reply.commit)
        if not route.local and not refusal:
            job.at = reply.at
        job.context = reply.context
        job.spend(Usage(tool_calls=1))
        if refusal or reply.guard:
            job.refusals += 1
        job.next_call = len(job.calls) if route.ends_reply else job.next_call + 1
        completed = reply.ok and call.tool == "todo_complete"
        if completed and (todo := job.state.phase.current):
            self._tell_what_counts(todo)
            job.state.complete_todo(todo.id)
        job.state.take_items(reply.scope)
        self._watch_call(course.Happened(call, reply, polling=route.polling, completed=completed))
        return True

    def _tell_what_counts(self, todo: Todo) -> None:
        """A todo that names no scope item counts for the next one: people should see that."""
        covered = self.job.state.covered_by(todo)
        if covered and not todo.items:
            self.notice(f"todo {todo.id} names no scope item; it counts for {covered[0]}")

    async def _deny(self, call: Call, why: str) -> None:
        job = self.job
        reply = await self.steps.deny(job, call, why)
        job.move_to(reply.commit)
        job.context = reply.context
        job.refusals += 1
        job.next_call += 1
        self._watch_call(course.Happened(call, reply, denied=True))

    async def _wait(self, call: Call, route: ToolRoute) -> None:
        """Let time pass; people's letters are attended to meanwhile, and then it goes on."""
        job = self.job
        if job.timer is None:
            # A step of its own, so that people see for how long.
            job.timer = self.steps.timer(call)
            return
        over = await self.steps.sleep(job, job.timer, self.has_letters)
        if over and await self._run(call, route):
            job.timer = None

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
        if current:
            self._tell_what_counts(current)
        await self.turn(
            outcome.purpose, call=job.next_call, completes=current.id if current else None
        )

    async def _complete(self, call: Call, route: ToolRoute) -> None:
        job = self.job
        facts = (await self.steps.facts(job)).facts
        if refusal := gates.completion_gate(job.state, facts, job.rewinds):
            job.refused_completions += 1
            await self._run(call, route, refusal.reason)
        elif await self._kept_from(call, route, ["job_complete"]):
            job.refused_completions += job.waiting is None
        elif job.limits.review:
            job.review = Review()
        else:
            await self._close()

    async def _go_on_reviewing(self, review: Review) -> None:
        """Ask the reviewer for a reply, or act on its verdict."""
        job, limits = self.job, self.job.limits.review
        call = job.calls[job.next_call]
        route = job.route(call.tool)
        if review.verdict is None and limits:
            if not self._parked(budget.review_call(job)):
                await self._ask_reviewer(review, limits)
        elif review.verdict == "accepted":
            await self._close()
            job.review = None
        elif route and not self._parked(budget.TOOL_CALL):
            await self._run(call, route, SENT_BACK.format(findings=review.findings))
            job.review = None
            job.refused_completions += 1
            job.sent_back += 1
            if limits and job.sent_back >= limits.attempts:
                job.waiting = parking.REVIEW

    async def _ask_reviewer(self, review: Review, limits: ReviewLimits) -> None:
        job, number = self.job, review.calls + 1
        reply = await self.steps.review(job, review.calls, last=number >= limits.calls)
        job.move_to(reply.commit)
        job.at = reply.at
        job.spend(reply.usage)
        job.review = Review(calls=number, context=reply.context)
        if reply.verdict:
            job.review.verdict, job.review.findings = reply.verdict, reply.findings
        elif number >= limits.calls:
            job.review.verdict = "sent back"
            job.review.findings = UNDECIDED.format(calls=number)

    async def _close(self) -> None:
        job = self.job
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

    async def _force_rewind(self, issue: str) -> None:
        """The turn in which the model could have gone back, or on, is over."""
        job = self.job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = parking.REWINDS.model_copy(
                update={"message": f"{issue} The job has used up its rewinds."}
            )
            return
        await self.turn("rewind", outcome="rewound", issue=issue)
        self.notice(f"stuck: went back. {issue}")

    @property
    def _todo(self) -> int:
        """Number of the current todo."""
        current = self.job.state.phase.current
        return current.id if current else 0

    def _watch_call(self, happened: course.Happened) -> None:
        job = self.job
        self._watch(course.after_call(job.course, happened, job.limits.stuck))

    def _watch(self, now: Course) -> None:
        """Go on with this course, and do what stuck detection says of it."""
        job, before = self.job, self.job.course
        job.course = now
        verdict = stuck.judge(before, now, job.limits.stuck, self._todo)
        if verdict is None:
            return
        self.notice(f"stuck: step {job.step}, {verdict.word}. {verdict.issue}")
        if isinstance(verdict, stuck.Wait):
            job.waiting = verdict.waiting
            return
        job.nudges += 1
        if isinstance(verdict, stuck.Narrow) or job.correction is None:
            # What is said of a reply without a call says more than that there were several.
            job.correction = verdict.text
        if isinstance(verdict, stuck.Narrow):
            job.course = stuck.narrow(now, verdict, job.step)

    async def _kept_from(self, call: Call, route: ToolRoute, points: list[Point]) -> bool:
        """Whether guards or hooks refuse a call whose gate has passed, or a person is asked."""
        job = self.job
        if not route.guarded:
            return False
        ending = await self.steps.judge_ending(job, route, points, approved=self._approved)
        if ending.asks:
            return not await self.ask_person(call, route, ending.asks, guard=ending.guard)
        for line in guards.heed(job, ending, call.tool, ending.refusal):
            self.notice(line)
        if ending.refusal:
            job.stop_hook_active = "job_complete" in points
            await self._run(call, route, ending.refusal)
        return bool(ending.refusal)

    @property
    def _approved(self) -> bool:
        """Whether a person has approved the call at hand."""
        asked = questions.approval_at_hand(self.job)
        return bool(asked and asked.approved)

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
        for dropped in questions.drop(job):
            self.notice(dropped)
        job.move_to(turned.commit)
        job.at, job.state, job.rewinds = turned.at, turned.state, rewinds
        job.last_phase = request.number
        job.phases[request.number] = turned.commit
        job.context, job.compacted, job.squeezed = turned.context, 0, 0
        job.spend(turned.usage)
        job.begin_phase()
        job.review, job.refused_completions = None, 0
        job.calls, job.next_call, job.correction = [], 0, None
        job.course, job.timer, job.wordy = Course(), None, 0
        job.stop_hook_active = False
        for path in turned.moved_aside:
            self.notice(f"moved to lost+found: {path}")


def _no_room(job: JobRecord, reservation: budget.Reservation) -> Waiting | None:
    over = budget.over(job, reservation)
    return over.waiting(workflow.info().workflow_id) if over else None

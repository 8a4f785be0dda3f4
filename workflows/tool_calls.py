"""Tool calls: carried out, refused, approved by people, waited for, and watched.

Every call ends in a checkpoint that holds its result, whoever decided on it.
"""

from __future__ import annotations

from temporalio import workflow

from protocol.course import Course
from protocol.endings import Point
from protocol.record import JobRecord, Waiting
from protocol.requests import Call, Usage
from protocol.state import Todo
from protocol.tools import ToolRoute
from workflows import budget, course, guards, pending, questions, replies, stuck, traces
from workflows.inbox import Inbox
from workflows.steps import Steps


class ToolCalls:
    """The calls of the reply at hand.

    What a step made counts only once its checkpoint is known: the record changes after the
    activity, never before, so that a step given up half way leaves nothing behind.
    """

    def __init__(self, job: JobRecord, steps: Steps, inbox: Inbox) -> None:
        self.job = job
        self.job_id = workflow.info().workflow_id
        self.steps = steps
        self.inbox = inbox
        self.notice = inbox.notice

    def no_room(self) -> Waiting | None:
        """How the job waits if the limits leave no room for its next call, else None."""
        return self._no_room(budget.next_call(self.job))

    def _parked(self, reservation: budget.Reservation) -> bool:
        """Park the job if the limits leave no room for a call."""
        if waiting := self._no_room(reservation):
            self.job.waiting = waiting
        return waiting is not None

    def _no_room(self, reservation: budget.Reservation) -> Waiting | None:
        over = budget.over(self.job, reservation)
        return over.waiting(self.job_id) if over else None

    async def ask_person(
        self,
        call: Call,
        route: ToolRoute,
        question: str,
        *,
        guard: str,
        instead: dict[str, str] | None = None,
    ) -> bool:
        """Whether a person approves the call at hand.

        Until somebody has spoken the job is parked, and the call comes up again when it goes on. A
        denial is recorded as the call's result here.

        Args:
            question: What the person is asked, beside the call and its arguments.
            guard: Who asks: the guard's name.
            instead: Arguments that guards have rewritten, as they would be run.
        """
        job = self.job
        asked = questions.approval_at_hand(job)
        if asked is None:
            shown = await self.steps.show_call(job)
            shown.arguments |= instead or {}
            questions.request_approval(job, call.tool, shown, question, guard, workflow.time())
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
        if asked.pending is None and await self._kept_from(call, route, []):
            return
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
            if questions.approval_at_hand(job) is None:
                guards.tried(job, reply.trials, call.tool, call.path)
            await self.ask_person(call, route, reply.asks, guard=reply.guard, instead=reply.instead)
            return False
        for line in guards.heed(job, reply, call.tool, reply.error or "", call.path):
            self.notice(line)
        if reply.pending:
            pending.take_reply(job, reply.pending, workflow.time())
            return False
        pending.settle(job)
        job.move_to(reply.commit, None if route.local or refusal else reply.at)
        job.context = reply.context
        if refusal or reply.guard or (call.tool == "todo_complete" and not reply.ok):
            self._count_refusal()
        else:
            job.spend(Usage(tool_calls=1, failed_calls=int(not reply.ok)))
        job.next_call += 1
        if reply.trouble:
            job.unread = replies.failed_call(call, reply.trouble)
        if not reply.ok:
            self._note_failure(call, reply.error or "")
        elif call.tool == "todo_write" or (call.path == "todos.yaml" and reply.changed):
            job.handed_over = True
        completed = reply.ok and call.tool == "todo_complete"
        if completed and (todo := job.state.phase.current):
            self._tell_what_counts(todo)
            job.state.complete_todo(todo.id)
            job.advice = ""
        job.state.take_items(reply.scope)
        self._watch_call(course.Happened(call, reply, polling=route.polling, completed=completed))
        if not (refusal or answer or call.tool in replies.COUNTED):
            waiting = guards.count_undecided(job, reply, call.tool, reply.error or "")
            if waiting:
                # Recorded as refused: the model makes it again, and what it was told counts anew.
                job.course = job.course.in_new_phase
                await self._wait_for_person(waiting)
        return True

    async def _wait_for_person(self, waiting: Waiting) -> None:
        """Park the job for what the model cannot mend, with the details in `errors/`."""
        await self.steps.write_error(self.job, waiting)
        self.job.waiting = waiting

    async def _take_up(self, call: Call, route: ToolRoute) -> None:
        """Go on with a call that its server has not finished, when a person or time lets it."""
        job = self.job
        if waiting := pending.waits_for_answer(job, self.job_id, workflow.time()):
            job.waiting = waiting
            return
        if job.timer:
            if self._parked(budget.Reservation()):
                return
            left = budget.seconds_left(job)
            letters = self.inbox.letters
            if not await self.steps.sleep(job, job.timer, left, lambda: bool(letters)):
                return
        await self._run(call, route)

    def _note_failure(self, call: Call, why: str) -> None:
        """Remember the first call of the reply that the model has to hear of before it goes on."""
        self.job.failed_call = self.job.failed_call or replies.failed_call(call, why)

    async def _hold_back(self, call: Call, route: ToolRoute, failed: str) -> None:
        """Count no todo, and no job, that the model called complete before it knew of a failure.

        Stuck detection is shown the failure, and not all that it holds back.
        """
        job = self.job
        if self._parked(budget.TOOL_CALL):
            return
        why = replies.HELD_BACK.format(failed=failed, tool=call.tool)
        reply = await self.steps.tool(job, call, route, why)
        job.move_to(reply.commit)
        job.context = reply.context
        self._count_refusal()
        job.next_call += 1

    def _count_refusal(self) -> None:
        """Count a call that was not carried out."""
        self.job.refusals += 1
        self.job.spend(Usage(refused_calls=1))

    def _tell_what_counts(self, todo: Todo) -> None:
        """A todo that names no scope item counts for the next one: people should see that."""
        covered = self.job.state.covered_by(todo)
        if covered and not todo.items:
            told = f"todo {todo.id} names no scope item; it counts for {covered[0]}"
            self.notice(told)
            traces.note(self.job, "decision", "gate", "scope", told, tool="todo_complete")

    async def _refuse(self, call: Call, route: ToolRoute, gate: str, why: str) -> None:
        """Record that a gate refused the call at hand."""
        if await self._run(call, route, why):
            self._note_refusal(call, gate, why)

    def _note_refusal(self, call: Call, gate: str, why: str) -> None:
        tool = call.tool[:60]
        happened = f"{tool} was refused"
        traces.note(
            self.job, "violation", "gate", gate, happened, why=why, tool=tool, path=call.path
        )

    async def _deny(self, call: Call, gate: str, why: str) -> None:
        """Answer a call for which no tool is run."""
        job = self.job
        reply = await self.steps.deny(job, call, why)
        job.move_to(reply.commit)
        job.context = reply.context
        self._count_refusal()
        job.next_call += 1
        if not job.course.narrowed:
            # Of the one turn before a rewind `todo_complete` is accepted whatever else is in it.
            self._note_failure(call, why)
        self._note_refusal(call, gate, why)
        self._watch_call(course.Happened(call, reply, denied=True))

    async def _wait(self, call: Call, route: ToolRoute) -> None:
        """Let time pass; people's letters are attended to meanwhile, and then it goes on."""
        job = self.job
        if job.timer is None:
            if await self._kept_from(call, route, []):
                return
            # A step of its own, so that people see for how long.
            job.timer = self.steps.timer(call)
            return
        if self._parked(budget.Reservation()):
            return
        left = budget.seconds_left(job)
        over = await self.steps.sleep(job, job.timer, left, lambda: bool(self.inbox.letters))
        if over and await self._run(call, route):
            job.timer = None

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
        verdicts = stuck.judge(before, now, job.limits.stuck, self._todo)
        if not verdicts:
            return
        for verdict in verdicts:
            self.notice(f"stuck: step {job.step}, {verdict.word}. {verdict.issue}")
            traces.note(
                job,
                "violation",
                "detector",
                verdict.pattern,
                verdict.issue,
                what_was_correct=verdict.advice,
            )
        gravest = verdicts[0]
        if isinstance(gravest, stuck.Wait):
            job.waiting = gravest.waiting
            return
        job.nudges += 1
        if isinstance(gravest, stuck.Narrow) or job.calls or job.correction is None:
            job.advice = stuck.text(verdicts)
        # Else what is said of a reply without a call says more than that there were several.
        if isinstance(gravest, stuck.Narrow):
            job.course = stuck.narrow(now, gravest, job.step)
        else:
            job.course = stuck.mark_advised(now, verdicts)

    async def _kept_from(self, call: Call, route: ToolRoute, points: list[Point]) -> bool:
        """Whether guards or hooks refuse a call that the workflow acts on, or a person is asked."""
        job = self.job
        if not route.guarded:
            return False
        ending = await self.steps.judge_ending(job, route, points, approved=self._approved)
        if ending.asks:
            if questions.approval_at_hand(job) is None:
                guards.tried(job, ending.trials, call.tool, call.path)
            return not await self.ask_person(call, route, ending.asks, guard=ending.guard)
        for line in guards.heed(job, ending, call.tool, ending.refusal, call.path):
            self.notice(line)
        if "job_complete" in points:
            stopped = job.stop_hook_active or ending.stopped
            job.stop_hook_active = bool(ending.refusal) and stopped
        waiting = guards.count_undecided(job, ending, call.tool, ending.refusal)
        if ending.refusal:
            if waiting:
                # The call comes up again once whoever failed is mended.
                await self._wait_for_person(waiting)
                return True
            await self._run(call, route, ending.refusal)
        return bool(ending.refusal)

    @property
    def _approved(self) -> bool:
        """Whether a person has approved the call at hand."""
        asked = questions.approval_at_hand(self.job)
        return bool(asked and asked.approved)

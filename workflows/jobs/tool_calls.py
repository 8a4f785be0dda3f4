"""Tool calls: run, refused, approved by people, and delayed by timers.

Every call ends in a checkpoint with its result, whoever decided on it.
"""

from temporalio import workflow

from protocol.endings import GuardPoint
from protocol.job_record import JobRecord
from protocol.publishing import PUBLISH
from protocol.requests import Call, RefusedBy, ToolReply
from protocol.todo_list import Todo
from protocol.tools import ToolRoute
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows.jobs import approvals, guard_outcomes, questions
from workflows.jobs.job_steps import JobSteps
from workflows.jobs.stuck_watch import StuckWatch
from workflows.rules import budget, course, reservations, skipped_calls
from workflows.runtime import trace_notes
from workflows.runtime.inbox import Inbox


class ToolCalls:
    """The calls of the current reply.

    A step counts only once its checkpoint is known: the record changes after the activity, never
    before, so a step that is given up half way leaves nothing behind.
    """

    def __init__(self, job: JobRecord, steps: JobSteps, inbox: Inbox) -> None:
        self.job = job
        self.job_id = workflow.info().workflow_id
        self.steps = steps
        self.inbox = inbox
        self.notice = inbox.notice
        self.stuck_watch = StuckWatch(job, inbox)

    def next_call_wait(self) -> WaitState | None:
        """Return how the job waits if the limits leave no room for its next call, else None."""
        return budget.room_wait(self.job, reservations.next_call_reservation(self.job), self.job_id)

    def park_without_room(self, reservation: reservations.Reservation) -> bool:
        """Park the job if the limits leave no room for a call."""
        if waiting := budget.room_wait(self.job, reservation, self.job_id):
            self.job.waiting = waiting
        return waiting is not None

    async def ask_person(
        self,
        call: Call,
        route: ToolRoute,
        question: str,
        *,
        guard: str,
        instead: dict[str, str] | None = None,
    ) -> bool:
        """Return whether a person approves the current call.

        Until somebody decides, the job is parked and stays at this call. This method records a
        denial as the call's result.

        Args:
            question: The question to the person, besides the call and its arguments.
            guard: Name of the guard that asks.
            instead: Rewritten arguments with which the call would run.
        """
        job = self.job
        approval = approvals.current_approval(job)
        if approval is None or not approval.answers(guard):
            shown = await self.steps.show_call(job)
            shown.arguments |= instead or {}
            approvals.open_approval_question(
                job, call.tool, shown, question, guard, workflow.time()
            )
            approval = approvals.current_approval(job)
        if approval and approval.approved is None:
            job.waiting = approvals.waiting_for_approval_answer(approval, self.job_id)
        elif approval and approval.approved is False:
            why = approvals.approval_denial_text(approval)
            by: RefusedBy = "nobody" if approval.expired else "person"
            await self.run_call(call, route, why, refused_by=by)
        return bool(approval and approval.approved)

    async def answer_clarification(self, call: Call, route: ToolRoute) -> None:
        """Ask people the agent's question, or give the agent their answer."""
        job = self.job
        clarification = job.clarification
        if clarification.pending is None and await self.refused_by_guards(call, route, []):
            return
        if clarification.pending is None and clarification.used < job.limits.clarifications:
            shown = await self.steps.show_call(job)
            if shown.error:
                await self.run_call(call, route, shown.error)
                return
            questions.ask_question(job, shown, workflow.time())
        if pending := clarification.pending:
            if pending.answer is None:
                job.waiting = questions.waiting_for_answer(pending, self.job_id)
                return
            if await self.run_call(call, route, answer=pending.answer):
                clarification.pending = None
                clarification.resolved += 1
        else:
            await self.run_call(call, route, answer=questions.ENOUGH)

    async def run_call(
        self,
        call: Call,
        route: ToolRoute,
        refusal: str | None = None,
        *,
        refused_by: RefusedBy = "",
        answer: str | None = None,
    ) -> bool:
        """Run a tool call, or record its answer, or why a gate refused it.

        Returns:
            False if the call is not finished: the job waits, and continues with this call.
        """
        job = self.job
        if self.park_without_room(reservations.TOOL_CALL):
            return False
        reply = await self.steps.call_tool(
            job, call, route, refusal, answer, refused_by=refused_by, approved=self._is_approved()
        )
        if reply.asks:
            if reply.has_run:
                job.start_call().has_run = True
            if approvals.current_approval(job) is None:
                guard_outcomes.record_guard_trials(job, reply.trials, call.tool, call.path)
            await self.ask_person(
                call, route, reply.asks, guard=reply.guard, instead=reply.rewritten_arguments
            )
            return False
        for line in guard_outcomes.apply_guard_outcome(job, reply, call.tool, call.path):
            self.notice(line)
        if reply.pending:
            questions.note_pending_progress(job, reply.pending, workflow.time())
            return False
        questions.clear_pending_call(job)
        job.reopening = []
        job.advance_to(reply.commit, None if route.local or refusal else reply.at)
        job.context = reply.context
        if refusal or reply.guard or (call.tool == "todo_complete" and not reply.ok):
            self._count_refusal()
        else:
            job.add_usage(Usage(tool_calls=1, failed_calls=int(not reply.ok)))
        job.next_call += 1
        self._record_outcome(call, reply, polling=route.polling)
        if not (refusal or answer or call.tool in skipped_calls.COUNTED):
            await self._wait_if_undecided(call, reply)
        return True

    def _record_outcome(self, call: Call, reply: ToolReply, *, polling: bool) -> None:
        """Bring the record of the job, its list and its scope up to a finished call."""
        job = self.job
        if reply.command_failure:
            job.failed_command = skipped_calls.failed_call_in_reply(call, reply.command_failure)
        if not reply.ok:
            self._note_failure(call, reply.error or "")
        elif call.tool == "todo_write" or (call.path == "todos.yaml" and reply.changed):
            job.handed_over = True
        completed = reply.ok and call.tool == "todo_complete"
        if completed and (todo := job.state.phase.current):
            self._note_covered_item(todo, reply)
            job.state.phase.complete(todo.id, done=not reply.passed_over)
            job.advice = ""
        job.state.phase.tick(reply.ticked)
        job.state.take_items(reply.scope)
        self.stuck_watch.record_call(
            course.CallOutcome(call, reply, polling=polling, completed=completed)
        )

    async def _wait_if_undecided(self, call: Call, reply: ToolReply) -> None:
        """Park the job once guards have failed to decide on too many calls."""
        job = self.job
        if waiting := guard_outcomes.count_undecided_votes(job, reply, call.tool):
            # Recorded as refused: the model makes it again, and patterns count from zero.
            job.course = job.course.in_new_phase
            await self.wait_for_person(waiting)

    async def wait_for_person(self, waiting: WaitState) -> None:
        """Park the job because the model cannot help, with the details in `errors/`."""
        await self.steps.write_error(self.job, waiting)
        self.job.waiting = waiting

    async def resume_call(self, call: Call, route: ToolRoute) -> None:
        """Continue a call that its server has not finished, once a person has answered or time has
        passed.
        """
        job = self.job
        if waiting := questions.pending_call_wait(job, self.job_id, workflow.time()):
            job.waiting = waiting
            return
        if job.timer:
            if self.park_without_room(reservations.Reservation()):
                return
            seconds_left = budget.budget_seconds_left(job)
            if not await self.steps.sleep_until(
                job, job.timer, seconds_left, lambda: bool(self.inbox.signals)
            ):
                return
        await self.run_call(call, route)

    def _note_failure(self, call: Call, why: str) -> None:
        """Remember the reply's first failure, which the model must read before its next completion
        counts. A refused `todo_complete` before a call that completes the list was needless.
        """
        if call.tool == "todo_complete" and skipped_calls.is_list_ended_later(self.job):
            return
        self.job.failed_call = self.job.failed_call or skipped_calls.failed_call_in_reply(call, why)

    async def hold_back_call(self, call: Call, route: ToolRoute, failed: str) -> None:
        """Refuse a completion that the model called before it knew of a failure.

        Stuck detection sees the failure, but not the calls that it holds back.
        """
        await self.skip_call(
            call, route, skipped_calls.HELD_BACK.format(failed=failed, tool=call.tool)
        )

    async def skip_call(self, call: Call, route: ToolRoute, why: str) -> None:
        """Answer a completion that does not count."""
        job = self.job
        if self.park_without_room(reservations.TOOL_CALL):
            return
        reply = await self.steps.call_tool(job, call, route, why, refused_by="held back")
        self._skip_call(reply)

    def _skip_call(self, reply: ToolReply) -> None:
        """Go on to the next call after one for which no tool ran."""
        job = self.job
        job.advance_to(reply.commit)
        job.context = reply.context
        self._count_refusal()
        job.next_call += 1

    def _count_refusal(self) -> None:
        """Count a call that was not run."""
        self.job.refusals += 1
        self.job.add_usage(Usage(refused_calls=1))

    def _note_covered_item(self, todo: Todo, reply: ToolReply) -> None:
        """Tell people which scope item a todo counts for if it names none itself."""
        covered = [item.id for item in reply.scope if item.status == "completed"]
        if covered and not todo.items:
            message = f"todo {todo.id} names no scope item; it counts for {covered[0]}"
            self.notice(message)
            trace_notes.note_trace(
                self.job, "decision", "gate", "scope", message, tool="todo_complete"
            )

    async def refuse_call(self, call: Call, route: ToolRoute, gate: RefusedBy, why: str) -> None:
        """Record that a gate refused the current call."""
        if await self.run_call(call, route, why, refused_by=gate):
            self._note_refusal(call, gate, why)

    def _note_refusal(self, call: Call, gate: str, why: str) -> None:
        tool = call.tool[:60]
        happened = f"{tool} was refused"
        trace_notes.note_trace(
            self.job, "violation", "gate", gate, happened, why=why, tool=tool, path=call.path
        )

    async def deny_call(self, call: Call, gate: RefusedBy, why: str) -> None:
        """Answer a call for which no tool runs."""
        job = self.job
        reply = await self.steps.deny_call(job, call, why, gate)
        self._skip_call(reply)
        if not job.course.narrowed_issue:
            # In the one turn before a rewind, `todo_complete` is accepted whatever else the reply
            # has.
            self._note_failure(call, why)
        self._note_refusal(call, gate, why)
        self.stuck_watch.record_call(course.CallOutcome(call, reply, denied=True))

    async def wait_for_timer(self, call: Call, route: ToolRoute) -> None:
        """Run the timer of a `wait`, then the call; signals are handled meanwhile."""
        job = self.job
        if job.timer is None:
            if await self.refused_by_guards(call, route, []):
                return
            # The timer starts in a step of its own, so that people see how long it takes.
            job.timer = self.steps.begin_timer(call)
            return
        if self.park_without_room(reservations.Reservation()):
            return
        remaining = budget.budget_seconds_left(job)
        over = await self.steps.sleep_until(
            job, job.timer, remaining, lambda: bool(self.inbox.signals)
        )
        if over and await self.run_call(call, route):
            job.timer = None

    async def refused_by_guards(
        self, call: Call, route: ToolRoute, points: list[GuardPoint]
    ) -> bool:
        """Return whether guards or hooks refuse a call that the workflow acts on, or a person is
        asked.
        """
        job = self.job
        if not route.guarded:
            return False
        ending = await self.steps.judge_ending(
            job,
            route,
            points,
            approved=self._is_approved(),
            push_approved=self._is_approved(PUBLISH),
        )
        if ending.asks:
            if approvals.current_approval(job) is None:
                guard_outcomes.record_guard_trials(job, ending.trials, call.tool, call.path)
            return not await self.ask_person(call, route, ending.asks, guard=ending.guard)
        for line in guard_outcomes.apply_guard_outcome(job, ending, call.tool, call.path):
            self.notice(line)
        if "job_complete" in points:
            stopped = job.stop_hook_active or ending.stopped
            job.stop_hook_active = bool(ending.refusal) and stopped
        waiting = guard_outcomes.count_undecided_votes(job, ending, call.tool)
        if ending.refusal:
            if waiting:
                # The job stays at this call until the failing guard is repaired.
                await self.wait_for_person(waiting)
                return True
            await self.run_call(call, route, ending.refusal, refused_by="guard")
        return bool(ending.refusal)

    def _is_approved(self, guard: str = "") -> bool:
        """Whether a person has approved the current call, as this guard asks for."""
        approval = approvals.current_approval(self.job)
        return bool(approval and approval.approved and approval.answers(guard))

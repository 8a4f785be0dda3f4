"""The job: one agent at work on one set of instructions, from start to result.

    prepare → bootstrap → work → transition → work → … → final → result

Each arrow between two phases is a gate: the phase ends only if its gate passes. The purposes:

    bootstrap    strategic   reads the instructions, writes the plan, hands over the first list
    work         tactical    does the todos of one list
    transition   strategic   looks back on a list, updates the plan, hands over the next list
    rewind       strategic   follows a phase that was undone; plans another way
    fork         strategic   the first phase of a job that begins at a phase of another job
    final        strategic   every item is covered: verifies the result and calls `job_complete`

`Job` owns a job's life: it handles signals, takes one step, publishes the status, and continues as
new when the history is long. `JobLoop` owns the rhythm: a step runs the next tool call of the
current reply, or requests a reply from the model (`job.step` counts replies). A step counts only
once its checkpoint is known: the record changes after the activity, never before, so a step that is
given up half way leaves nothing behind.

A call passes these checks in this order; each can refuse it, and the model gets the reason:

    stuck rule   the phase goes in circles: in this turn only a rewind or completion is accepted
    reply rule   a guard refused the whole reply that the call is part of
    tool rule    the tool does not exist, or not in this kind of phase
    hold-back    an earlier call of the same reply failed, which the model had not read yet
    limits       no room for the call: it is not refused, the job waits for a person
    gate         code that looks at the workspace, only for calls that end a phase or the job
    guards       rules and programs of the agent's configuration; people can bypass a refusal once
    judge        a second model, if configured, only for the end of a phase
    review       a second agent, if configured, only for the end of the job

A phase ends by its last `todo_complete`. A strategic phase also ends by itself, after a reply that
handed over the next list (`todo_write`) and left no other todo open.

`job.waiting` says why the job does not continue. With `trying` it keeps retrying, for example while
an endpoint is unavailable; otherwise it waits for a signal from a person.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.endings import TransitionRequest
from protocol.helpers import DELEGATE
from protocol.job_record import JobRecord
from protocol.limits import Budget
from protocol.payload_reading import InvalidPayload, read_job_start_payload, read_payload_object
from protocol.phase import Phase, Purpose
from protocol.prepare_requests import PrepareRequest
from protocol.requests import Call
from protocol.tools import ToolRoute
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows import (
    activity_failures,
    acts,
    budget,
    course,
    endpoint_remedies,
    gates,
    guard_outcomes,
    job_status,
    questions,
    stuck,
    text_replies,
    tool_rules,
    trace_notes,
)
from workflows.activity_calls import StepInterrupted, position_request_fields
from workflows.activity_failures import StepFailed
from workflows.cancellation import (
    Cancellation,
    finish_cancellation,
    is_cancelled,
    read_cancellation,
    run_despite_cancellation,
)
from workflows.completion import Completion
from workflows.continuation import Continuation
from workflows.delegation import Delegation
from workflows.inbox import Inbox
from workflows.job_display import JobDisplay
from workflows.job_recovery import JobRecovery
from workflows.job_signals import JobSignals
from workflows.job_steps import JobSteps
from workflows.learning_notes import note_failure_reflection, store_learning_traces
from workflows.phase_judge import PhaseJudge
from workflows.retry_watch import RetryWatch
from workflows.run_share import covers_needs, take_share, wait_for_share
from workflows.signal_receiver import SignalReceiver
from workflows.start_procedure import StartProcedure
from workflows.tool_calls import ToolCalls

NO_SUMMARY = "no room in the limits for its summary; the notes on its todos take the place"
MAX_INHERITED_CHARACTERS = 2000
"""Most characters of the findings that a fork begins with."""


@workflow.defn(name="Job")
class Job(SignalReceiver):
    """Runs an agent on instructions. Input: {"agent": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._record: JobRecord | None = None
        self._steps = JobSteps()
        self._start = StartProcedure(self._steps, self.inbox)
        self._continuation = Continuation(self.inbox)
        self._early_share: Budget | None = None
        """A new share of the trial's limits that came before the record was there."""

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """Run from start to result; see the module."""
        job = self._record = await self._begin_job(start)
        if self._early_share:
            take_share(job, self._early_share)
        job.run_id = workflow.info().run_id
        self._display = JobDisplay(job, self._steps, self.inbox, self._continuation)
        self._display.last_report = self._start.last_report
        self._loop = JobLoop(job, self._steps, self.inbox)
        self._recovery = JobRecovery(job, self._steps, self.inbox, self._display)
        self._signals = JobSignals(
            job, self._steps, self.inbox, phases=self._loop, recovery=self._recovery
        )
        if not workflow.info().continued_run_id:
            self._display.show_status()
        try:
            while job.result is None:
                await self._advance(job)
        except BaseException as error:
            # Re-raises anything that is no cancellation.
            await self._close_cancelled(job, read_cancellation(error))
            raise asyncio.CancelledError from None
        if self.inbox.refuse_late_signals():
            await self._display.publish_status()
        return job.result.model_dump()

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Return the job's status."""
        if self._record is None:
            return job_status.preparing_job_status(self.inbox, self._start.waiting)
        return job_status.job_status_answer(self._record, self.inbox)

    @workflow.signal(description="Sent by the trial that the job is a run of.")
    def share(self, *payload: Any) -> None:
        """Take what the run may use from now on of the trial's limits."""
        try:
            limits = read_payload_object(Budget, payload[0] if payload else None, "signal share")
        except InvalidPayload as refusal:
            self.inbox.refuse(str(refusal))
            return
        if self._record is None:
            self._early_share = limits
        else:
            take_share(self._record, limits)

    async def _begin_job(self, start: tuple[Any, ...]) -> JobRecord:
        """Restore the record of the previous run, or prepare a new job."""
        if (job := self._continuation.restore_record(JobRecord, start)) is not None:
            return job
        try:
            start_input = read_job_start_payload(start)
            request = PrepareRequest(
                **start_input.model_dump(exclude={"trial"}),
                chain=workflow.info().first_execution_run_id,
            )
            prepared = await self._start.prepare_until_ready(
                lambda: self._steps.prepare_job(request),
                project=start_input.project.id if start_input.project else "",
                agent=start_input.agent,
            )
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except StepFailed as failed:
            raise ApplicationError(failed.message, type="BadStart", non_retryable=True) from None
        job = JobRecord.begin(prepared, workflow.now().timestamp())
        job.share = start_input.trial
        for line in job.notices:
            self.inbox.notice(line)
        if start_input.project:
            job.project = start_input.project.id
            inputs = start_input.project.handoff.inputs
            if start_input.fork and not inputs.collides:
                job.inherited_failure = "\n".join(inputs.findings)[:MAX_INHERITED_CHARACTERS]
        return job

    async def _advance(self, job: JobRecord) -> None:
        """Handle signals, take one step, publish the status."""
        await self._attend_signals(job)
        watch = RetryWatch(job, self._steps, self.inbox)
        try:
            step = self._loop.step()
            await self._steps.run_interruptible(step, self._has_urgent_signal, watch)
            if job.waiting and job.waiting.trying:
                job.waiting = None  # the retry went through
        except StepInterrupted:
            if watch.waiting:
                job.waiting = watch.waiting
                job.count_time(workflow.now().timestamp())
                return  # to the signal, without calling anybody
        except StepFailed as failed:
            with suppress(StepInterrupted):
                await self._steps.run_interruptible(
                    self._recovery.handle_failure(failed), self.inbox.has_cancel
                )
        # Count before the folder is shown: from here on a waiting job uses a person's time.
        job.count_time(workflow.now().timestamp())
        if job.waiting and not job.waiting.trying:
            with suppress(StepInterrupted, StepFailed):
                await self._steps.run_interruptible(
                    self._signals.show_folder(), self.inbox.has_cancel
                )
        if trace_notes.is_trace_flush_due(job):
            storing = store_learning_traces(job, self._steps, self.inbox.notice)
            with suppress(StepInterrupted):
                await self._steps.run_interruptible(storing, self._has_urgent_signal)
        await self._display.publish_status()
        self._continue_as_new_if_due(job)

    def _has_urgent_signal(self) -> bool:
        return self._record is not None and self.inbox.has_urgent(self._record.phases)

    async def _attend_signals(self, job: JobRecord) -> None:
        """Handle all signals; wait while the job needs a person."""
        while True:
            while self.inbox.signals:
                received = self.inbox.signals[0]
                with suppress(StepInterrupted):
                    await self._steps.run_interruptible(
                        self._signals.handle(received), self.inbox.has_cancel
                    )
                self.inbox.signals.remove(received)
            if covers_needs(job):
                job.waiting = None
            if job.pausing and acts.is_pause_due(job):
                with suppress(StepInterrupted):
                    await self._steps.run_interruptible(
                        self._signals.pause_job(job.pausing), self.inbox.has_cancel
                    )
            if is_cancelled():
                # The signal arrived during an activity that finished anyway.
                raise asyncio.CancelledError
            if job.waiting is None and self._display.is_reported_waiting:
                # The next step may take long.
                await self._display.report_to_project()
                continue
            if job.waiting is None or job.waiting.trying:
                self._display.end_wait()
                return
            await self._display.publish_status()
            self._continue_as_new_if_due(job)
            await self._wait_for_signals(job)

    async def _wait_for_signals(self, job: JobRecord) -> None:
        """Wait for people; for an answer or an approval only until its deadline."""
        timeout = questions.question_time_left(job, workflow.time())
        try:
            await workflow.wait_condition(
                lambda: bool(self.inbox.signals or self.inbox.refused) or covers_needs(job),
                timeout=timeout,
            )
        except TimeoutError:
            if not self.inbox.signals:
                self.inbox.notice(questions.answer_expired_question(job, workflow.time()))
        job.clock = workflow.now().timestamp()
        self._steps.may_continue_as_new = True

    def _continue_as_new_if_due(self, job: JobRecord) -> None:
        """Continue as new with the same state once the history is long.

        Not in a workflow task that has run a local activity, which would run a second time if the
        server discards the task.
        """
        due = self._steps.may_continue_as_new and job.result is None
        if due and self._continuation.is_due(job, job.limits.history_events):
            self._continuation.begin_run(job)

    async def _close_cancelled(self, job: JobRecord, cancellation: Cancellation) -> None:
        """Write the result of a cancelled job; only the server can close it as cancelled."""
        await run_despite_cancellation(store_learning_traces(job, self._steps, self.inbox.notice))
        await run_despite_cancellation(
            self._steps.give_up_task(job)
        )  # of an MCP server, if one is running

        async def close() -> None:
            closing = self._steps.close_job(
                job, "cancelled", reason=cancellation.reason, request_cancel=cancellation.by_signal
            )
            closed = await run_despite_cancellation(closing)
            job.advance_to(closed.commit)
            job.result = closed.result
            self.inbox.notice_moved_aside(closed.moved_aside)

        await finish_cancellation(
            job, self.inbox, cancellation, close=close, publish=self._display.publish_status
        )


class JobLoop:
    """The rhythm of a job: replies, their tool calls, and the gates at the ends of phases."""

    def __init__(self, job: JobRecord, steps: JobSteps, inbox: Inbox) -> None:
        self._job = job
        self._steps = steps
        self._inbox = inbox
        self._calls = ToolCalls(job, steps, inbox)
        self._judge = PhaseJudge(self._calls)
        self._delegation = Delegation(self._calls)
        self._completion = Completion(self._calls)

    async def step(self) -> None:
        """Run the next call of the current reply, or request a reply from the model."""
        job = self._job
        if lesson := job.inherited_failure:
            await note_failure_reflection(job, self._steps, self._inbox.notice, lesson)
            job.inherited_failure = ""
        elif job.review:
            await self._completion.continue_review(job.review)
        elif job.next_call < len(job.calls):
            await self._dispatch_call(job.calls[job.next_call])
        elif job.calls and job.handed_over and job.end_tried_step != job.step:
            await self._end_handed_over_phase()
        elif issue := stuck.overdue_stuck_rewind(job.course, job.step):
            await self._rewind_stuck_phase(issue)
        elif budget.is_over_context_budget(job):
            if not self._calls.park_without_room(budget.compaction_reservation(job)):
                await self._compact_context()
        elif not self._calls.park_without_room(budget.model_reply_reservation(job)):
            await self._request_reply()

    def next_call_wait(self) -> WaitState | None:
        """Return how the job waits if the limits leave no room for its next call, else None."""
        return self._calls.next_call_wait()

    # Replies

    async def _request_reply(self) -> None:
        job = self._job
        try:
            reply = await self._steps.model_call(job)
        except StepFailed as failed:
            if failed.kind == "ModelRefused" and text_replies.must_reply_with_call(job):
                # Perhaps the endpoint refuses only the forced call: ask once more without it.
                job.can_require_call = False
                return
            if failed.kind != "ContextTooLong" or text_replies.is_compaction_exhausted(job):
                raise
            if not self._calls.park_without_room(budget.compaction_reservation(job)):
                shortened = await self._compact_context(hard=True)
                if not shortened and not failed.by_fallback:
                    raise
                job.hard_compactions = text_replies.count_compaction(job, shortened=shortened)
            return
        job.hard_compactions = 0
        job.push_failure = reply.behind
        if reply.model:
            self._inbox.notice(f"step {job.step + 1}: the fallback {reply.model} answered")
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
            job.refusals += 1
            happened = f"a reply called no tool ({reply.verdict or 'reports'})"
            correct = job.correction or ""
            trace_notes.note_trace(
                job, "violation", "gate", "reply", happened, what_was_correct=correct
            )
        refusal = ""
        if reply.guard in job.bypasses:
            self._inbox.notice(guard_outcomes.use_guard_bypass(job, reply.guard, "a reply"))
        elif reply.guard:
            job.correction = reply.refusal
            refusal = guard_outcomes.REPLY.format(refusal=reply.refusal)
            self._inbox.notice(
                guard_outcomes.record_guard_refusal(job, reply.guard, "a reply", reply.refusal)
            )
        job.settle_reply(refusal)
        guard_outcomes.record_guard_trials(job, reply.trials, "a reply")
        self._calls.record_course(course.course_after_reply(job.course, reply.calls))

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
        elif why := stuck.stuck_phase_refusal(job.course, call.tool, calls.todo_number):
            await calls.deny_call(call, "stuck", why)
        elif why := job.refused_replies.get(job.step):
            await calls.deny_call(call, "reply", why)
        elif route is None:
            await calls.deny_call(
                call, "tools", tool_rules.unknown_tool_refusal(call.tool, offered)
            )
        elif why := tool_rules.phase_tool_rule(route, kind):
            await calls.deny_call(call, "phase", why)
        elif call.tool in text_replies.COUNTED and job.failed_call:
            await calls.hold_back_call(call, route, job.failed_call)
        elif is_last_todo and job.failed_command:
            await calls.hold_back_call(call, route, job.failed_command)
        elif calls.park_without_room(budget.TOOL_CALL):
            return
        elif call.tool == DELEGATE:
            await self._delegation.delegate_call(call, route)
        elif call.tool == course.WAIT and call.seconds:
            await calls.wait_for_timer(call, route)
        elif call.tool == "request_clarification":
            await calls.answer_clarification(call, route)
        elif is_last_todo:
            await self._end_phase(call, route)
        elif call.tool == "todo_rewind":
            await self._rewind_for_agent(call, route)
        elif call.tool == "job_complete":
            await self._completion.complete_job(call, route)
        else:
            await calls.run_call(call, route)

    # Ends of phases

    async def _end_phase(self, call: Call, route: ToolRoute) -> None:
        """End the phase on its last `todo_complete`, if gate, guards and judge allow it."""
        job = self._job
        facts = (await self._steps.read_gate_facts(job)).facts
        outcome = gates.phase_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            await self._calls.refuse_call(call, route, "phase end", outcome.reason)
            return
        before = job.bypasses
        if await self._calls.refused_by_guards(call, route, ["todo_complete", "phase_end"]):
            return
        with guard_outcomes.restoring_guard_bypasses(job, before):
            if await self._judge.refuses_end(call, route):
                return
            if current := job.state.phase.current:
                self._calls.note_covered_item(current)
            await self.change_phase(
                outcome.purpose, call=job.next_call, completes=list(outcome.completes)
            )

    async def _end_handed_over_phase(self) -> None:
        """End a strategic phase after the reply in which all of it is done or seen to be done.

        If something prevents it, the next turn names it, and `todo_complete` ends the phase later.
        """
        job = self._job
        if job.failed_call:
            job.end_tried_step = job.step
            job.add_correction(text_replies.NOT_OVER.format(failed=job.failed_call))
            return
        facts = (await self._steps.read_gate_facts(job)).facts
        if facts.todos_file == "missing":
            # The list was deleted again.
            job.handed_over = False
            return
        before = job.bypasses
        outcome = gates.handover_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            job.add_correction(outcome.reason)
        elif job.limits.judge and job.state.phase.kind in job.limits.judge.phases:
            job.add_correction(text_replies.BY_CALL)
        elif not await self._refused_by_phase_guards(before):
            with guard_outcomes.restoring_guard_bypasses(job, before):
                await self.change_phase(outcome.purpose, completes=list(outcome.completes))
            return
        job.end_tried_step = job.step

    async def _refused_by_phase_guards(self, before: dict[str, str]) -> bool:
        """Whether guards prevent a phase that has handed over from ending.

        Args:
            before: The bypasses to restore if a person has to be asked.
        """
        job = self._job
        route = job.route("todo_complete")
        if route is None or not route.guarded:
            return False
        ending = await self._steps.judge_ending(job, route, ["todo_complete", "phase_end"])
        if ending.asks:
            # People approve calls, and this call has not been made yet.
            job.bypasses = before
            job.add_correction(text_replies.BY_CALL)
            return True
        for line in guard_outcomes.apply_guard_outcome(
            job, ending, "the end of the phase", ending.refusal
        ):
            self._inbox.notice(line)
        waiting = guard_outcomes.count_undecided_votes(job, ending, "todo_complete", ending.refusal)
        if waiting:
            await self._calls.wait_for_person(waiting)
        if ending.refusal:
            job.refusals += 1
            job.add_correction(ending.refusal)
        return bool(ending.refusal)

    # Rewinds

    async def _rewind_for_agent(self, call: Call, route: ToolRoute) -> None:
        """Rewind the phase because the agent called `todo_rewind`."""
        job = self._job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = activity_failures.REWINDS
            return
        facts = (await self._steps.read_gate_facts(job)).facts
        if facts.arguments_error:
            await self._calls.run_call(call, route, facts.arguments_error)
            return
        before = job.bypasses
        if await self._calls.refused_by_guards(call, route, []):
            return
        with guard_outcomes.restoring_guard_bypasses(job, before):
            await note_failure_reflection(job, self._steps, self._inbox.notice, "", job.next_call)
            await self.change_phase("rewind", outcome="rewound", call=job.next_call)

    async def _rewind_stuck_phase(self, issue: str) -> None:
        """Rewind the phase because the job is stuck and its last turn to recover has passed."""
        job = self._job
        if endpoint_remedies.is_endpoint_without_calls(job):
            job.waiting = endpoint_remedies.endpoint_without_calls_wait(issue)
            return
        if job.rewinds >= job.limits.rewinds:
            job.waiting = activity_failures.REWINDS.model_copy(
                update={"message": f"{issue} The job has used up its rewinds."}
            )
            return
        await note_failure_reflection(job, self._steps, self._inbox.notice, issue)
        await self.change_phase("rewind", outcome="rewound", issue=issue)
        self._inbox.notice(f"stuck: went back. {issue}")

    # From one phase to the next

    async def change_phase(self, purpose: Purpose, **details: Any) -> None:
        """End the running phase and begin a new one with the next unused number."""
        job, ended = self._job, self._job.state.phase
        await self._steps.give_up_task(job)
        rewinds = job.rewinds + (purpose == "rewind")
        request = TransitionRequest(
            **position_request_fields(job),
            number=job.last_phase + 1,
            purpose=purpose,
            rewinds=rewinds,
            **details,
        )
        request.acts = acts.acts_in_phase(job)
        request.may_ask = job.clarification.used < job.limits.clarifications
        is_long = job.phase_usage.model_calls > job.limits.summary_calls
        request.summary = request.outcome == "completed" and ended.kind == "tactical" and is_long
        if request.summary:
            await wait_for_share(job, budget.summary_call_reservation(job))
        if request.summary and budget.exceeded_limit(job, budget.summary_call_reservation(job)):
            request.summary = False
            self._inbox.notice(f"phase {job.state.phase.number}: {NO_SUMMARY}")
        reply = await self._steps.run_transition(job, request)
        self._trace_phase_outcome(ended, request, reply.issue)
        for dropped in questions.drop_questions(job):
            self._inbox.notice(dropped)
        job.advance_to(reply.commit, reply.at)
        job.state, job.rewinds = reply.state, rewinds
        job.last_phase = request.number
        job.phases[request.number] = reply.commit
        job.context = reply.context
        job.add_usage(reply.usage)
        not_run = text_replies.skipped_calls_note(job, request.call)
        job.begin_phase()
        job.correction = not_run
        self._inbox.notice_moved_aside(reply.moved_aside)
        for remark in reply.remarks:
            self._inbox.notice(remark)

    def _trace_phase_outcome(self, ended: Phase, request: TransitionRequest, issue: str) -> None:
        """Record a failed attempt, and a success after it."""
        job = self._job
        if request.outcome == "rewound":
            job.last_failure = request.issue or issue
            happened = f"phase {ended.number} ({ended.name}) was rewound"
            trace_notes.note_trace(job, "outcome", "gate", "rewind", happened, why=job.last_failure)
        elif job.last_failure and ended.kind == "tactical":
            happened = f"phase {ended.number} ({ended.name}) was completed after a failure"
            trace_notes.note_trace(job, "outcome", "gate", "phase", happened, why=job.last_failure)
            job.last_failure = ""

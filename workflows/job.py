"""The job: one agent at work on one set of instructions, from start to result.

    prepare → bootstrap → work → transition → work → … → final → result

Each arrow between two phases is a gate: a phase ends only if its gate passes, unless it is given
up by a rewind. The purposes:

    bootstrap    strategic   reads the instructions, writes the plan, hands over the first list
    work         tactical    does the todos of one list
    transition   strategic   looks back on a list, updates the plan, hands over the next list
    rewind       strategic   follows a phase that was given up; plans another way
    fork         strategic   reconsiders the plan of the job that this one goes on from
    final        strategic   the plan has no open phase: verifies the result, calls `job_complete`

`Job` owns a job's life: it handles signals, takes one step, publishes the status, and continues as
new when the history is long. Its parts, in the order in which a reader meets them:

    start_procedure    prepares the job's folder and first checkpoint
    job_signals        what people's signals do
    job_loop           a step: a reply of the model, or one of its tool calls
    tool_calls         how a call runs, is refused, or waits for a person
    stuck_watch        what follows when the phase goes in circles
    phase_end          the gate, guards and judge at the end of a phase
    rewind             the end of a phase that is given up
    phase_transition   the next phase takes the place of the last one
    completion         the end of the job
    job_recovery       what follows a step that failed: an older checkpoint, or a wait

A phase ends by its last `todo_complete`. A strategic phase also ends by itself, after a reply
whose calls succeeded and that handed over the next list (`todo_write`), if no other todo is open
(those of the final phase may be) and no judge or person has to be asked. A todo whose file has
changed is done. Each strategic phase may call `job_complete`, whose gate asks for every item.

A rewind goes on with the files as they are. One by a person that names a phase restores the scope
of its start, and the files too unless it says otherwise.

Each phase begins with a fresh conversation: what the next one needs is in the files and in its
first message. An agent with a list of its own (`todos.work`) begins with it, in a tactical phase,
and may end the job there if it runs commands, is shown no todos, or has `job_complete` in the list
(`ends_job_in_list`). Guards and hooks are asked inside the activities: on each reply, around each
tool call, and after a gate that passes.

`job.waiting` says why the job does not continue. With `trying` it keeps retrying, for example while
an endpoint is unavailable; otherwise it waits for a person's signal, or until the time for an
answer is over.
"""

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.job_record import JobRecord
from protocol.notices import PersonAct
from protocol.payload_reading import InvalidPayload, read_job_start_payload
from protocol.payloads import ReceivedSignal
from protocol.prepare_requests import PrepareRequest
from protocol.teams import TEAM
from workflows.jobs import job_status, questions
from workflows.jobs.job_display import JobDisplay
from workflows.jobs.job_loop import JobLoop
from workflows.jobs.job_recovery import JobRecovery
from workflows.jobs.job_signals import JobSignals, signal_refusal_reason
from workflows.jobs.job_steps import JobSteps
from workflows.jobs.learning_notes import store_learning_traces
from workflows.jobs.phase_transition import PhaseTransition
from workflows.jobs.retry_watch import RetryWatch
from workflows.jobs.start_procedure import StartProcedure
from workflows.jobs.tool_calls import ToolCalls
from workflows.runtime import acts, trace_notes
from workflows.runtime.activity_calls import StepInterrupted, count_given_up_replies
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.cancellation import (
    Cancellation,
    finish_cancellation,
    is_cancelled,
    read_cancellation,
    run_despite_cancellation,
)
from workflows.runtime.continuation import Continuation
from workflows.runtime.signal_receiver import SignalReceiver

IN_PAUSE = ("pause", "resume", "rewind", "cancel")
"""Signals that are handled while a reply is kept back."""
MAX_INHERITED_CHARACTERS = 2000
"""Most characters of the findings that a fork for a project's unit begins with."""


@workflow.defn(name="Job")
class Job(SignalReceiver):
    """Runs an agent on instructions. Input: {"agent": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._record: JobRecord | None = None
        self._steps = JobSteps()
        self._start = StartProcedure(self._steps, self.inbox)
        self._continuation = Continuation(self.inbox)

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """Run from start to result; see the module."""
        job = self._record = await self._begin_job(start)
        job.id, job.run_id = workflow.info().workflow_id, workflow.info().run_id
        self._display = JobDisplay(job, self._steps, self.inbox, self._continuation)
        self._display.last_report = self._start.last_report
        calls = ToolCalls(job, self._steps, self.inbox)
        transition = PhaseTransition(job, self._steps, self.inbox)
        self._loop = JobLoop(calls, transition)
        self._recovery = JobRecovery(job, self._steps, self.inbox, self._display)
        self._signals = JobSignals(calls, transition, self._recovery)
        # The quota of a team counts what has noted its run.
        if job.team or not workflow.info().continued_run_id:
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
        await self.inbox.close()
        return job.result.model_dump()

    @workflow.query(description="The job's state; `starter.py show --json` adds to it.")
    def status(self) -> dict[str, Any]:
        """Return the job's status."""
        job_id = workflow.info().workflow_id
        if self._record is None:
            answer = job_status.preparing_job_status(self.inbox, self._start.waiting, job_id)
        else:
            answer = job_status.job_status_answer(self._record, self.inbox, job_id)
        return answer.model_dump(mode="json")

    def refusal_reason(self, received: ReceivedSignal) -> str:
        return signal_refusal_reason(self._record, received) if self._record else ""

    def act_of(self, received: ReceivedSignal) -> PersonAct | None:
        # A pause is settled once the calls of the running reply are done.
        is_due = self._record is not None and self._record.pausing is received
        return None if is_due else received.act

    async def _begin_job(self, start: tuple[Any, ...]) -> JobRecord:
        """Restore the record of the previous run, or prepare a new job."""
        try:
            if (job := self._continuation.restore_record(JobRecord, start)) is not None:
                return job
            start_input = read_job_start_payload(start)
            request = PrepareRequest(
                **start_input.model_dump(exclude={"trial", "approve_plan"}),
                chain=workflow.info().first_execution_run_id,
            )
            prepared = await self._start.prepare_until_ready(
                lambda: self._steps.prepare_job(request),
                project=start_input.project.id if start_input.project else "",
                title=start_input.title,
                agent=start_input.agent,
                **({TEAM: start_input.team} if start_input.team else {}),
            )
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except StepFailed as failed:
            raise ApplicationError(failed.message, type="BadStart", non_retryable=True) from None
        job = JobRecord.begin(prepared, workflow.now().timestamp())
        if start_input.trial:
            job.limits.job = job.limits.job.lowered_to(start_input.trial.limits)
        job.starter, job.team = start_input.by, start_input.team
        for line in job.notices:
            self.inbox.notice(line)
        if start_input.project:
            job.project = start_input.project.id
            inputs = start_input.project.handoff.inputs
            if start_input.fork and not inputs.says_all:
                job.inherited_failure = "\n".join(inputs.findings)[:MAX_INHERITED_CHARACTERS]
        return job

    async def _advance(self, job: JobRecord) -> None:
        """Handle signals, take one step, publish the status."""
        await self._attend_signals(job)
        watch = RetryWatch(job, self._steps, self.inbox, lambda: self._hold_step(job))
        try:
            step = self._loop.step()
            await self._steps.run_interruptible(step, self._has_urgent_signal, watch)
            if job.waiting and job.waiting.trying:
                job.waiting = None  # the retry went through
            if self._steps.given_up:  # by calls that were abandoned
                count_given_up_replies(job, self._steps, {})
        except StepInterrupted:
            count_given_up_replies(job, self._steps, watch.unfinished)
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
            storing = store_learning_traces(job, self._steps, self.inbox)
            with suppress(StepInterrupted):
                await self._steps.run_interruptible(storing, self._has_urgent_signal)
        await self._display.publish_status()
        await self._continue_as_new_if_due(job)

    async def _hold_step(self, job: JobRecord) -> bool:
        """Pause during a model call; return whether what people did makes its reply useless.

        Other signals wait until the reply is there, as without a pause.
        """
        commit = job.commit
        job.count_time(workflow.now().timestamp())

        def find_signal() -> ReceivedSignal | None:
            signals = self.inbox.signals
            return next((each for each in signals if each.signal in IN_PAUSE), None)

        while True:
            while received := find_signal():
                with suppress(StepInterrupted):
                    await self._steps.run_interruptible(
                        self._signals.handle(received), self.inbox.has_cancel
                    )
                self.inbox.signals.remove(received)
            if job.waiting is None or job.waiting.trying:
                self._display.end_wait()
                job.clock = workflow.now().timestamp()
                return job.commit != commit
            await self._display.publish_status()
            await workflow.wait_condition(lambda: find_signal() is not None)

    def _has_urgent_signal(self) -> bool:
        return self._record is not None and self.inbox.has_urgent(self._record.phases)

    async def _attend_signals(self, job: JobRecord) -> None:
        """Handle all signals; wait while the job needs a person."""
        while True:
            while self.inbox.signals:
                received = await self.next_signal()
                with suppress(StepInterrupted):
                    await self._steps.run_interruptible(
                        self._signals.handle(received), self.inbox.has_cancel
                    )
                self.inbox.signals.remove(received)
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
            await self._continue_as_new_if_due(job)
            await self._wait_for_signals(job)

    async def _wait_for_signals(self, job: JobRecord) -> None:
        """Wait for people; for an answer or an approval only until its deadline."""
        timeout = questions.question_time_left(job, workflow.time())
        try:
            await workflow.wait_condition(
                lambda: bool(self.inbox.signals or self.inbox.refused),
                timeout=timeout,
            )
        except TimeoutError:
            if not self.inbox.signals:
                self.inbox.notice(questions.answer_expired_question(job, workflow.time()))
        job.clock = workflow.now().timestamp()
        self._steps.may_continue_as_new = True

    async def _continue_as_new_if_due(self, job: JobRecord) -> None:
        """Continue as new with the same state once the history is long.

        Not in a workflow task that has run a local activity, which would run a second time if the
        server discards the task.
        """
        due = self._steps.may_continue_as_new and job.result is None
        if due and self._continuation.is_due(job, job.limits.history_events):
            await self._continuation.begin_run(job)

    async def _close_cancelled(self, job: JobRecord, cancellation: Cancellation) -> None:
        """Write the result of a cancelled job; only the server can close it as cancelled."""
        count_given_up_replies(job, self._steps, {})
        await run_despite_cancellation(store_learning_traces(job, self._steps, self.inbox))
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

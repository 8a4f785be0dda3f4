"""The job: one agent at work on one set of instructions, from start to result.

    prepare → bootstrap → tactical → strategic → tactical → … → final → result

The loop below does one thing at a time: attend to what people sent, then either ask the model
for a reply or carry out the next call of the reply at hand. Whatever the model does, the plan's
rhythm is kept here: what ends a phase passes its gate first, and what a step made counts only
once its checkpoint is known.

Signals (inbox) ← Lifecycle (ends, runs) ← JobLifecycle (letters, trouble, display) ← Job (the loop)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.payloads import InvalidPayload, read_start
from protocol.record import JobRecord
from protocol.start import PrepareRequest
from workflows import status, traces
from workflows.activity_calls import StepInterrupted
from workflows.activity_failures import StepFailed
from workflows.job_lifecycle import JobLifecycle
from workflows.learning_notes import store_pending_traces
from workflows.lifecycle import run_shielded
from workflows.phase_loop import PhaseLoop
from workflows.start import StartProcedure


@workflow.defn(name="Job")
class Job(JobLifecycle):
    """Runs an agent on instructions. Input: {"agent": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._start = StartProcedure(self._steps, self._inbox)

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """From start to result; see the module."""
        self._job = await self._begin_job(start)
        self._job.run_id = workflow.info().run_id
        self._loop = PhaseLoop(self._job, self._steps, self._inbox)
        return await self._run_until_result(self._job)

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Where the job stands."""
        job: JobRecord | None = getattr(self, "_job", None)
        if job is None:
            return status.preparing_status(self._inbox, self._start.waiting)
        return status.status_answer(job, self._inbox)

    async def _begin_job(self, start: tuple[Any, ...]) -> JobRecord:
        if (job := self._restored_record(JobRecord, start)) is not None:
            return job
        try:
            start_input = read_start(start)
            request = PrepareRequest(
                **start_input.model_dump(), chain=workflow.info().first_execution_run_id
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
        for line in job.notices:
            self._inbox.notice(line)
        if start_input.project:
            job.project, self._last_report = start_input.project.id, self._start.last_report
            if start_input.fork:
                job.inherited_failure = "\n".join(start_input.project.handoff.inputs.findings)[
                    :2000
                ]
        self._show_status(job)
        return job

    async def _advance(self) -> None:
        await self._attend_signals()
        try:
            await self._steps.run_interruptible(self._loop.step(), self._has_urgent_signal)
            if self._job.waiting and self._job.waiting.trying:
                self._job.waiting = None
        except StepInterrupted:
            pass
        except StepFailed as failed:
            with suppress(StepInterrupted):
                await self._steps.run_interruptible(
                    self._handle_failure(failed), self._inbox.has_cancel
                )
        # Before the folder is shown: from here on a job that waits has a person's time.
        self._job.count_time(workflow.now().timestamp())
        if self._job.waiting and not self._job.waiting.trying:
            with suppress(StepInterrupted, StepFailed):
                await self._steps.run_interruptible(self._show_folder(), self._inbox.has_cancel)
        if traces.flush_is_due(self._job):
            keeping = store_pending_traces(self._job, self._steps, self._inbox.notice)
            with suppress(StepInterrupted):
                await self._steps.run_interruptible(keeping, self._has_urgent_signal)
        await self._publish_status()
        self._continue_as_new_if_due()

    def _has_urgent_signal(self) -> bool:
        return self._inbox.has_urgent(self._job.phases)

    async def _close_cancelled(self, reason: str, *, by_signal: bool) -> None:
        await run_shielded(store_pending_traces(self._job, self._steps, self._inbox.notice))

        await run_shielded(self._steps.give_up_task(self._job))

        async def close() -> None:
            closed = await run_shielded(
                self._steps.close_job(
                    self._job, "cancelled", reason=reason, request_cancel=by_signal
                )
            )
            self._job.advance_to(closed.commit)
            self._job.result = closed.result
            self._inbox.moved_aside(closed.moved_aside)

        await self._finish_cancellation(self._job, close, by_signal=by_signal)

    async def _publish_status(self) -> None:
        self._show_status(self._job)
        await self._report_to_project()
        await self._call_when_due()

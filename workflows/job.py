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

from protocol.payloads import Refused, read_start
from protocol.record import JobRecord
from protocol.starting import PrepareRequest
from workflows import status, traces
from workflows.activity_calls import Interrupted
from workflows.job_lifecycle import JobLifecycle
from workflows.lessons import keep_traces
from workflows.lifecycle import to_its_end
from workflows.parking import StepFailed
from workflows.phase_loop import PhaseLoop
from workflows.start import Start


@workflow.defn(name="Job")
class Job(JobLifecycle):
    """Runs an agent on instructions. Input: {"agent": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._start = Start(self._steps, self._inbox)

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """From start to result; see the module."""
        self._job = await self._begin(start)
        self._job.run = workflow.info().run_id
        self._loop = PhaseLoop(self._job, self._steps, self._inbox)
        return await self._until_result(self._job)

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Where the job stands."""
        job = getattr(self, "_job", None)
        if job is None:
            return status.preparing(self._inbox, self._start.waiting)
        return status.status(job, self._inbox)

    async def _begin(self, start: tuple[Any, ...]) -> JobRecord:
        if (job := self._taken_over(JobRecord, start)) is not None:
            return job
        try:
            asked = read_start(start)
            request = PrepareRequest(
                **asked.model_dump(), chain=workflow.info().first_execution_run_id
            )
            made = await self._start.prepared(
                lambda: self._steps.prepare(request),
                project=asked.project.id if asked.project else "",
                agent=asked.agent,
            )
        except Refused as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except StepFailed as failed:
            raise ApplicationError(failed.message, type="BadStart", non_retryable=True) from None
        job = JobRecord.begin(made, workflow.now().timestamp())
        for line in job.notices:
            self._inbox.notice(line)
        if asked.project:
            job.project, self._told = asked.project.id, self._start.told
            if asked.fork:
                job.lesson = "\n".join(asked.project.handoff.inputs.findings)[:2000]
        self._show(job)
        return job

    async def _advance(self) -> None:
        await self._attend()
        try:
            await self._steps.interruptible(self._loop.step(), self._urgent)
            if self._job.waiting and self._job.waiting.trying:
                self._job.waiting = None
        except Interrupted:
            pass
        except StepFailed as failed:
            with suppress(Interrupted):
                await self._steps.interruptible(self._trouble(failed), self._inbox.cancels)
        # Before the folder is shown: from here on a job that waits has a person's time.
        self._job.count_time(workflow.now().timestamp())
        if self._job.waiting and not self._job.waiting.trying:
            with suppress(Interrupted, StepFailed):
                await self._steps.interruptible(self._show_folder(), self._inbox.cancels)
        if traces.due(self._job):
            keeping = keep_traces(self._job, self._steps, self._inbox.notice)
            with suppress(Interrupted):
                await self._steps.interruptible(keeping, self._urgent)
        await self._let_see()
        self._continue_as_new_if_due()

    def _urgent(self) -> bool:
        return self._inbox.urgent(self._job.phases)

    async def _cancelled(self, reason: str, *, by_signal: bool) -> None:
        await to_its_end(keep_traces(self._job, self._steps, self._inbox.notice))

        await to_its_end(self._steps.give_up_task(self._job))

        async def close() -> None:
            closed = await to_its_end(
                self._steps.close(self._job, "cancelled", reason=reason, request_cancel=by_signal)
            )
            self._job.move_to(closed.commit)
            self._job.result = closed.result
            self._inbox.moved_aside(closed.moved_aside)

        await self._write_down(self._job, close, by_signal=by_signal)

    async def _let_see(self) -> None:
        self._show(self._job)
        await self._tell_project()
        await self._call_when_due()

"""The trial: runs jobs under several configurations and reports how each of them ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
)
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from protocol.endings import JobResult
from protocol.payloads import InvalidPayload, read_workflow_input
from protocol.trial import RunStatus, TrialRun, TrialStart, TrialStatus, progress_line
from workflows.activity_calls import is_workflow_gone
from workflows.cancellation import is_cancelled
from workflows.project_steps import Child

EXAMPLE = '{"start": {"agent": "…"}, "configurations": {"now": {}, "new": {…}}, "runs": 5}'


@workflow.defn(name="Trial")
class Trial:
    """Compares configurations. Input: see `protocol.trial.TrialStart`."""

    def __init__(self) -> None:
        self._runs: list[TrialRun] = []
        self._children: dict[str, Child] = {}
        self._stopped = False
        self._is_over = False
        self._memo: dict[str, str] = {}
        self._start: TrialStart | None = None
        self._main: asyncio.Task[Any] | None = None

    @workflow.run
    async def run(self, *values: Any) -> dict[str, Any]:
        """Run every job and return how each ended."""
        try:
            start = read_workflow_input(TrialStart, values, "trial", EXAMPLE)
        except InvalidPayload as wrong:
            raise ApplicationError(str(wrong), non_retryable=True) from None
        self._start = start
        trial = workflow.info().workflow_id
        # Alternate configurations, so that changes in the endpoint's speed affect all of them
        # alike.
        self._runs = [
            TrialRun(job=f"{trial}-{name}-{number:02}", configuration=name)
            for number in range(1, start.runs + 1)
            for name in start.configurations
        ]
        self._show_progress()
        slots = asyncio.Semaphore(start.parallel)
        self._main = asyncio.current_task()
        tasks = [asyncio.create_task(self._carry_out(start, run, slots)) for run in self._runs]
        try:
            await workflow.wait(tasks)
        except asyncio.CancelledError:
            self._stopped = True
            for job in list(self._children):
                await _cancel_trial_job(job)
            await workflow.wait(tasks)
            self._show_progress()
            if not is_cancelled():  # the signal cancelled it, not the server
                return self.status()
            raise
        for task in tasks:
            task.result()
        self._is_over = True
        self._show_progress()
        return self.status()

    @workflow.signal(name="cancel", description="End the trial, and the runs that have not ended.")
    def cancel(self, *_: Any) -> None:
        """Cancel the runs that have not ended, and return those that have."""
        if self._main:
            self._main.cancel()

    @workflow.query(description="How every run of the trial stands.")
    def status(self) -> dict[str, Any]:
        """Return the trial's start, and its runs in the order of their start."""
        if self._start is None:
            return {"trial": True, "agent": "trial", "status": "running", "runs": []}
        return TrialStatus(
            title=self._start.title,
            status=self._status_word(),
            start=self._start.bounded,
            runs=self._runs,
        ).model_dump(mode="json")

    def _status_word(self) -> Literal["running", "completed", "cancelled"]:
        if self._stopped:
            return "cancelled"
        return "completed" if self._is_over else "running"

    def _show_progress(self) -> None:
        """Show the trial in Temporal Web, and in lists."""
        assert self._start
        line = progress_line(self._runs)
        memo = {
            "title": self._start.title,
            "agent": "trial",
            "status": self._status_word(),
            "state": line,
        }
        if memo != self._memo:
            self._memo = memo
            workflow.set_current_details(f"**{self._start.title}**\n\n{line}")
            workflow.upsert_memo(memo)

    async def _carry_out(self, start: TrialStart, run: TrialRun, slots: asyncio.Semaphore) -> None:
        async with slots:
            if self._stopped:
                return
            began = workflow.time()
            run.status = "running"
            try:
                child: Child = await workflow.start_child_workflow(
                    "Job",
                    start.job_start(run.configuration),
                    id=run.job,
                    result_type=dict,
                    cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                    parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
                )
            except WorkflowAlreadyStartedError:
                run.status, run.reason = "failed", f"there is a job {run.job} already"
                return
            self._children[run.job] = child
            if self._stopped:
                await _cancel_trial_job(run.job)
            with suppress(TimeoutError):
                await workflow.wait_condition(child.done, timeout=start.seconds)
            if late := not child.done():
                await _cancel_trial_job(run.job)
            ended = await _note_trial_ending(run, child)
            del self._children[run.job]
            run.seconds = workflow.time() - began
            if late and ended != "completed":
                run.status, run.reason = "late", f"it had not ended after {start.seconds} s"
            self._show_progress()


async def _note_trial_ending(run: TrialRun, child: Child) -> RunStatus:
    try:
        result = JobResult.model_validate(await child)
    except ChildWorkflowError as error:
        cause: BaseException = error
        while isinstance(cause, FailureError) and cause.cause:
            cause = cause.cause
        run.status = "cancelled" if isinstance(error.cause, CancelledError) else "failed"
        run.reason = str(getattr(cause, "message", None) or cause)[:500]
        return run.status
    run.status = result.status
    run.reason = "" if result.status == "completed" else result.summary[:500]
    run.phases, run.rewinds, run.usage = result.phases, result.rewinds, result.usage
    return run.status


async def _cancel_trial_job(job: str) -> None:
    """Request the cancellation of a job; a job that has already ended is no error."""
    try:
        await workflow.get_external_workflow_handle(job).cancel()
    except FailureError as error:
        if not is_workflow_gone(error):
            raise

"""The child jobs of a trial: starting, signalling, cancelling, and how each ended."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import CancelledError, ChildWorkflowError, FailureError

from protocol.endings import JobResult
from protocol.limits import Budget
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun
from workflows.runtime.activity_failures import is_called_workflow_gone
from workflows.runtime.child_jobs import Child, cancel_child_job, start_child_job


async def start_trial_job(start: TrialStart, run: TrialRun, share: Budget) -> Child:
    """Start a run's job. Raises WorkflowAlreadyStartedError.

    Args:
        start: The trial.
        run: The run.
        share: What it may use of the trial's limits.
    """
    job = start.job_start(run.configuration)
    if limits := share.model_dump(exclude_none=True):
        job["trial"] = {"trial": workflow.info().workflow_id, "limits": limits}
    return await start_child_job(run.job, job)


async def signal_trial_job(job: str, signal: str, payload: dict[str, Any]) -> None:
    """Send a signal to a job; a job that has already ended is no error."""
    handle: Any = workflow.get_external_workflow_handle(job)
    try:
        await handle.signal(signal, payload)
    except FailureError as error:
        if not is_called_workflow_gone(error):
            raise


async def cancel_trial_job(job: str, reason: str) -> None:
    """Request the cancellation of a job; a job that has already ended is no error."""
    await cancel_child_job(job, f"its trial ended it: {reason}")


async def note_trial_ending(run: TrialRun, child: Child) -> None:
    """Wait for a run's job, and record how it ended."""
    try:
        result = JobResult.model_validate(await child)
    except ChildWorkflowError as error:
        cause: BaseException = error
        while isinstance(cause, FailureError) and cause.cause:
            cause = cause.cause
        if isinstance(error.cause, CancelledError):
            run.status = "cancelled"  # its message says no more
        else:
            run.status, run.reason = "failed", str(getattr(cause, "message", None) or cause)[:500]
        return
    run.status = result.status
    run.reason = "" if result.status == "completed" else result.summary[:500]
    run.phases, run.rewinds, run.usage = result.phases, result.rewinds, result.usage

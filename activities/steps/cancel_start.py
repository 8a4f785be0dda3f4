"""How a workflow comes to be closed as Cancelled: only the server can, and only when asked."""

from __future__ import annotations

from temporalio import activity

from activities.job.activity_context import job_id
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from protocol.start import CancelStartRequest


async def cancel_own_run() -> None:
    """Have the run that this activity belongs to cancelled."""
    run_id = activity.info().workflow_run_id
    await activity.client().get_workflow_handle(job_id(), run_id=run_id).cancel()


@activity.defn
async def cancel_start(request: CancelStartRequest) -> CancelStartRequest:
    """For a job that has nothing to close: it was cancelled before it began."""
    with typed_failures():
        async with heartbeats():
            await cancel_own_run()
            return request

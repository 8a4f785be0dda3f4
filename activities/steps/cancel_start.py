"""Closes a workflow as Cancelled: only the server can, and only on request."""

from __future__ import annotations

from temporalio import activity

from activities.job.activity_context import activity_job_id
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from protocol.prepare_requests import CancelStartRequest


async def cancel_own_run() -> None:
    """Cancel the workflow run of this activity."""
    run_id = activity.info().workflow_run_id
    await activity.client().get_workflow_handle(activity_job_id(), run_id=run_id).cancel()


@activity.defn
async def cancel_start(request: CancelStartRequest) -> CancelStartRequest:
    """Cancel a job that was cancelled before it began and has nothing to close."""
    with typed_failures():
        async with heartbeats():
            await cancel_own_run()
            return request

"""Closes a workflow as Cancelled: only the server can, and only on request."""

from temporalio import activity

from activities.runtime.activity_info import activity_job_id
from activities.steps.root_activity import async_step
from protocol.prepare_requests import CancelStartRequest


async def cancel_own_run() -> None:
    run_id = activity.info().workflow_run_id
    await activity.client().get_workflow_handle(activity_job_id(), run_id=run_id).cancel()


@activity.defn
async def cancel_start(request: CancelStartRequest) -> CancelStartRequest:
    async with async_step():
        await cancel_own_run()
        return request

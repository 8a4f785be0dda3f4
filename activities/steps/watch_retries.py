"""Watches a job's call of a model: whether the server only tries it again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.job.activity_context import activity_job_id
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import AttemptSuperseded, heartbeats
from protocol.requests import RetriedCall, WatchRetriesRequest

LOOK_SECONDS = 1.0


@activity.defn
async def watch_retries(request: WatchRetriesRequest) -> RetriedCall:
    """Return once an activity of this workflow is retried because of its endpoint.

    Workflow code does not see the failed attempts of an activity. It changes nothing, so that an
    attempt may be repeated at any moment.
    """
    with typed_failures():
        async with heartbeats():
            try:
                while True:
                    if retried := await find_retried_call(activity.client()):
                        return retried
                    await asyncio.sleep(LOOK_SECONDS)
            except asyncio.CancelledError:
                details = activity.cancellation_details()
                if details and details.not_found:
                    # The job is over: not worth a traceback in the worker's log.
                    raise AttemptSuperseded from None
                raise


async def find_retried_call(client: Client) -> RetriedCall | None:
    """Return the first activity of this workflow that waits for its endpoint, if any.

    Of calls side by side, such as helpers', those that have not failed end first: their replies
    are paid for.
    """
    handle = client.get_workflow_handle(activity_job_id(), run_id=activity.info().workflow_run_id)
    with suppress(RPCError):
        description = await handle.describe()
        all_pending = description.raw_description.pending_activities
        for pending in all_pending:
            if not pending.HasField("last_failure"):
                continue
            failure = await client.data_converter.decode_failure(pending.last_failure)
            if not isinstance(failure, ApplicationError) or failure.type != "Endpoint":
                continue
            side_by_side = [
                each for each in all_pending if each.activity_type == pending.activity_type
            ]
            if all(each.HasField("last_failure") for each in side_by_side):
                return RetriedCall(activity=pending.activity_type.name, message=failure.message)
    return None

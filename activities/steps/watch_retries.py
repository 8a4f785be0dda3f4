"""Watches a job's call of a model: whether the server only tries it again."""

import asyncio
from contextlib import suppress

from temporalio import activity
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.runtime.activity_info import activity_job_id
from activities.steps.root_activity import async_step, end_with_workflow
from protocol.failure_details import read_helps_detail, read_unfinished_detail
from protocol.requests import RetriedCall, WatchRetriesRequest

LOOK_SECONDS = 1.0
STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


@activity.defn
async def watch_retries(request: WatchRetriesRequest) -> RetriedCall:
    """Return once an activity of this workflow is retried because of its endpoint.

    Workflow code does not see the failed attempts of an activity. It changes nothing, so that an
    attempt may be repeated at any moment.
    """
    async with async_step():
        with end_with_workflow():
            while True:
                if retried := await find_retried_call(activity.client(), request):
                    return retried
                await asyncio.sleep(LOOK_SECONDS)


async def find_retried_call(client: Client, request: WatchRetriesRequest) -> RetriedCall | None:
    """Return the first activity of this workflow that waits for its endpoint, if any.

    Of calls side by side, such as helpers', those that are not retried end first: their replies
    are paid for.
    """
    handle = client.get_workflow_handle(activity_job_id(), run_id=activity.info().workflow_run_id)
    with suppress(RPCError):
        description = await handle.describe()
        all_pending = description.raw_description.pending_activities
        retried = [
            (pending, failure)
            for pending in filter(is_call_retried, all_pending)
            if isinstance(
                failure := await client.data_converter.decode_failure(pending.last_failure),
                ApplicationError,
            )
        ]
        unfinished = {
            pending.activity_id: read_unfinished_detail(failure.details)
            for pending, failure in retried
        }
        if request.failing and not any(map(is_reply_coming, all_pending)):
            return RetriedCall(unfinished=unfinished)
        for pending, failure in retried:
            kind = pending.activity_type
            if failure.type == "Endpoint" and all(
                is_call_retried(each) for each in all_pending if each.activity_type == kind
            ):
                return RetriedCall(
                    activity=kind.name,
                    message=failure.message,
                    helps=read_helps_detail(failure.details),
                    unfinished=unfinished,
                )
    return None


def is_call_retried(pending: PendingActivityInfo) -> bool:
    """Whether an activity has failed, and no reply is coming in now."""
    return pending.HasField("last_failure") and not is_reply_coming(pending)


def is_reply_coming(pending: PendingActivityInfo) -> bool:
    """Whether the attempt under way, not an earlier one, says that it receives a reply."""
    return pending.state == STARTED and bool(pending.heartbeat_details.payloads)

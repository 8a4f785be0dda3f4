"""Whether workers poll the task queues of jobs, as the server knows it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client
from temporalio.service import RPCError

from protocol.short_text import count_noun, first_few

RECENT_SECONDS = 90
"""Age of a current poller's entry: pollers renew it with each poll, at least once a minute."""
FORGOTTEN_SECONDS = 600
"""The server deletes entries after 5 minutes: one that seems older shows a clock difference."""
TIMEOUT = timedelta(seconds=5)
START = "start one with `python worker.py`"


async def describe_queue(client: Client, name: str) -> DescribeTaskQueueResponse:
    """Return the pollers of a task queue. Raises RPCError."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=name),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    return await client.workflow_service.describe_task_queue(request, timeout=TIMEOUT)


async def unpolled_queue_notice(client: Client, queue: str, jobs: Iterable[str] = ()) -> str:
    """Say that no worker polls a queue, since when, and which jobs stand still; empty if one does.

    A worker that was killed counts as polling for `RECENT_SECONDS`.
    """
    try:
        pollers = (await describe_queue(client, queue)).pollers
    except RPCError:
        return ""
    newest = max((poller.last_access_time.ToSeconds() for poller in pollers), default=0)
    if pollers and time.time() - newest < RECENT_SECONDS:
        return ""
    at = datetime.fromtimestamp(newest, UTC).astimezone()
    since = f"since {at:%Y-%m-%d %H:%M:%S}" if pollers else "in the last five minutes"
    ids = list(jobs)
    still = f"; {count_noun(len(ids), 'job')} cannot go on: {first_few(ids, 5)}" if ids else ""
    return f"no worker has polled the task queue {queue} {since}{still}; {START}"

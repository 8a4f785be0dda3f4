"""Whether workers poll the task queues of jobs, as the server knows it."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    ListWorkersRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from engine.connection import ROOT_MARK
from protocol.short_text import count_noun, first_few

RECENT_SECONDS = 90
"""Age of a current poller's entry: pollers renew it with each poll, at least once a minute."""
FORGOTTEN_SECONDS = 600
"""The server deletes entries after 5 minutes: one that seems older shows a clock difference."""
TIMEOUT = timedelta(seconds=5)
ONE_ROOT = (
    "give them the same LONGHAUL_WORKSPACES or each root its LONGHAUL_TASK_QUEUE, or connect the "
    "roots with workspace.remote"
)
START = "start one with `python worker.py`"


async def describe_queue(client: Client, name: str) -> DescribeTaskQueueResponse:
    """Return the pollers of a task queue. Raises RPCError."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=name),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    return await client.workflow_service.describe_task_queue(request, timeout=TIMEOUT)


async def list_current_workers(
    client: Client, name: str, queue: DescribeTaskQueueResponse | None = None
) -> list[PollerInfo]:
    """Return the workers that poll the task queue now. Raises RPCError."""
    queue = queue or await describe_queue(client, name)
    stopped = await _list_stopped_workers(client, name)
    return [
        poller
        for poller in queue.pollers
        if time.time() - poller.last_access_time.seconds < RECENT_SECONDS
        and poller.last_access_time.ToSeconds() > stopped.get(poller.identity, 0)
    ]


async def _list_stopped_workers(client: Client, name: str) -> dict[str, int]:
    """Return the identities of workers that said that they stop, and the second at which they did.

    The server keeps the last poll of such a worker for minutes. One that was killed said nothing,
    so it counts as polling for `RECENT_SECONDS`. A restarted container has the same host name and
    process id, so its worker has the same identity, and is only listed after a minute.
    """
    query = f"TaskQueue = '{name}'"
    request = ListWorkersRequest(namespace=client.namespace, query=query)
    try:
        answer = await client.workflow_service.list_workers(request, timeout=TIMEOUT)
    except RPCError:
        return {}  # Older servers keep no such list.
    beats = [entry.worker_heartbeat for entry in answer.workers_info]
    stopping = WorkerStatus.WORKER_STATUS_SHUTTING_DOWN
    at_work = {beat.worker_identity for beat in beats if beat.status != stopping}
    stopped: dict[str, int] = {}
    for beat in beats:
        if (identity := beat.worker_identity) not in at_work:
            stopped[identity] = max(stopped.get(identity, 0), beat.heartbeat_time.ToSeconds())
    return stopped


def worker_roots(pollers: Iterable[PollerInfo]) -> list[str]:
    """Return the ids of the workspaces roots that these workers publish in their identity."""
    published = (poller.identity.partition(ROOT_MARK) for poller in pollers)
    return sorted({root for _, _, root in published if root})


def several_roots_notice(queue: str, roots: list[str]) -> str:
    """Say that workers of one queue serve several roots, so that each takes others' jobs."""
    return (
        f"workers of {len(roots)} workspaces roots poll the task queue {queue} "
        f"({', '.join(roots)}): each takes steps of the others' jobs and refuses them"
    )


async def task_queue_notice(client: Client, queue: str, jobs: Iterable[str] = ()) -> str:
    """Say that no worker polls a queue, since when, and which jobs stand still, or that workers of
    several roots do; empty if all is well.

    A worker that was killed counts as polling for `RECENT_SECONDS`.
    """
    try:
        described = await describe_queue(client, queue)
        roots = worker_roots(await list_current_workers(client, queue, described))
    except RPCError:
        return ""
    if len(roots) > 1:
        return f"{several_roots_notice(queue, roots)}; {ONE_ROOT}"
    pollers = described.pollers
    newest = max((poller.last_access_time.ToSeconds() for poller in pollers), default=0)
    if pollers and time.time() - newest < RECENT_SECONDS:
        return ""
    at = datetime.fromtimestamp(newest, UTC).astimezone()
    since = f"since {at:%Y-%m-%d %H:%M:%S}" if pollers else "in the last five minutes"
    ids = list(jobs)
    still = f"; {count_noun(len(ids), 'job')} cannot go on: {first_few(ids, 5)}" if ids else ""
    return f"no worker has polled the task queue {queue} {since}{still}; {START}"

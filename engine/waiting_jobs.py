"""A gauge of the jobs and projects that wait for a person, by reason.

The figures come from the server, since jobs move between workers. Every worker reports the same
figures, so they must not be summed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import get_args

from temporalio.client import Client
from temporalio.common import MetricMeter, SearchAttributeKey
from temporalio.service import RPCError

from protocol.search_attribute_names import STATUS
from protocol.waiting import WAITING_PREFIX, WaitReason, read_status_value

SECONDS = 10.0
MOST = 10_000
QUERY = (
    f"WorkflowType IN ('Job', 'Project') AND ExecutionStatus = 'Running' "
    f"AND {STATUS} STARTS_WITH '{WAITING_PREFIX}'"
)
TYPES = ("Job", "Project")
REASONS: tuple[str, ...] = get_args(WaitReason)
_STATUS = SearchAttributeKey.for_keyword(STATUS)

log = logging.getLogger("longhaul.waiting")


@asynccontextmanager
async def waiting_gauge(client: Client, meter: MetricMeter | None) -> AsyncIterator[None]:
    """Keep the gauge up to date during the context; without a meter, do nothing."""
    if meter is None:
        yield
        return
    task = asyncio.create_task(_keep_counting_waiting_jobs(client, meter))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def count_waiting_jobs(client: Client) -> Counter[tuple[str, str]]:
    """Count waiting workflows by type and reason. Raises RPCError.

    A project that waits only because one of its jobs waits is not counted in addition to the job.
    """
    waiting = [each async for each in client.list_workflows(QUERY, limit=MOST)]
    parents = {each.parent_id for each in waiting}
    counts: Counter[tuple[str, str]] = Counter()
    for each in waiting:
        if each.id not in parents:
            _, reason = read_status_value(each.typed_search_attributes.get(_STATUS) or "")
            counts[each.workflow_type, reason] += 1
    return counts


async def _keep_counting_waiting_jobs(client: Client, meter: MetricMeter) -> None:
    gauge = meter.create_gauge(
        "longhaul_jobs_waiting", "Jobs and projects that wait for a person, as the server has them."
    )
    failing = False
    while True:
        try:
            counts = await count_waiting_jobs(client)
        except RPCError as error:
            if not failing:
                log.warning("the jobs that wait are not counted: %s", error.message)
            failing = True
        else:
            failing = False
            for type_ in TYPES:
                for reason in REASONS:
                    labels = {"reason": reason, "type": type_.lower()}
                    gauge.set(counts[type_, reason], labels)
        await asyncio.sleep(SECONDS)

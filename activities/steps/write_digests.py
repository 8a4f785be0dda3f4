"""The `digest` activity: asks the jobs of this task queue, and writes the digests on them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.client import (
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError

from activities.checkpoints import Root
from activities.notifications.digest_text import DigestJob, digest_text
from activities.notifications.recipients import resolve_recipients
from activities.runtime.activity_info import activity_schedule_seconds
from activities.steps.root_activity import coroutine_activity
from config.agent_files import agents_with_digest
from config.schema.agent import AgentConfig, ConfigError
from protocol.digests import DigestMark, DigestMessage, DigestReply, DigestRequest
from protocol.notification_requests import DIGEST, Destination, Notification
from protocol.short_text import first_few, shell_quoted
from protocol.status import JobStatus, ProjectStatus
from protocol.teams import own_memo
from protocol.usage import Spend
from protocol.waiting import QUOTA, read_status_value

MOST_JOBS = 2000
MOST_QUERIES = 8
"""Queries at the same time."""
QUERY_TIMEOUT = timedelta(seconds=10)
DAY = 86_400
LATE_SECONDS = 300
"""How much later than it happened an end may be listed by the server."""
Told = tuple[str, DigestJob, Spend]
"""A job's agent, what is said of it, and what it has spent in all."""


@coroutine_activity
async def digest(root: Root, request: DigestRequest) -> DigestReply:
    now = activity_schedule_seconds()
    since = request.since.at or now - DAY
    groups = _recipients(await asyncio.to_thread(agents_with_digest, request.digest))
    listed, unread = await _list_jobs(activity.info().task_queue, since - LATE_SECONDS)
    jobs = [each for each in listed if each.run_id not in request.since.ended]
    slots = asyncio.Semaphore(MOST_QUERIES)

    async def ask(job: WorkflowExecution) -> Told:
        async with slots:
            return await _describe(job, request.since)

    answers = await asyncio.gather(*map(ask, jobs))
    mark = DigestMark(
        at=now,
        spent={job.id: spent for _, job, spent in answers if not job.ending},
        ended=[each.run_id for each in listed if not _is_open(each)],
    )
    messages = []
    for number, (to, agents) in enumerate(groups):
        about = [job for agent, job, _ in answers if not agent or agent in agents]
        notification = Notification(
            key=f"{activity.info().workflow_run_id}.{number}.{DIGEST}",
            event=DIGEST,
            job=DIGEST,
            status=DIGEST,
            text=digest_text(since, about, unread),
            command="starter.py list --open",
        )
        messages.append(DigestMessage(notification=notification, to=to))
    return DigestReply(messages=messages, mark=mark)


def _recipients(configs: Sequence[AgentConfig]) -> list[tuple[list[Destination], set[str]]]:
    """Return who is notified, each with the agents whose jobs it is about.

    An agent whose recipients cannot be found on this worker is left out.
    """
    groups: dict[str, tuple[list[Destination], set[str]]] = {}
    for config in configs:
        try:
            book = resolve_recipients([config])
        except ConfigError as error:
            activity.logger.warning("nobody gets a digest on agent %s: %s", config.name, error)
            continue
        to = [each for each in book.to if DIGEST in each.on] if book else []
        if to:
            key = "\n".join(each.model_dump_json() for each in to)
            groups.setdefault(key, (to, set()))[1].add(config.name)
    return list(groups.values())


async def _list_jobs(queue: str, since: int) -> tuple[list[WorkflowExecution], int]:
    """Return the jobs and projects that are open or have ended since then, and how many more."""
    query = (
        f"TaskQueue = '{queue}' AND WorkflowType IN ('Job', 'Project') AND "
        "ExecutionStatus != 'ContinuedAsNew' AND (ExecutionStatus = 'Running' OR "
        f"CloseTime > '{datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%SZ}')"
    )
    client = activity.client()
    found = [each async for each in client.list_workflows(query, limit=MOST_JOBS)]
    more = (await client.count_workflows(query)).count - MOST_JOBS
    # A project speaks for its jobs, but for none that outlives it.
    projects = {each.id: _is_open(each) for each in found if each.workflow_type == "Project"}

    def has_speaker(job: WorkflowExecution) -> bool:
        parent = job.parent_id or ""
        return parent in projects and (projects[parent] or not _is_open(job))

    return [each for each in found if not has_speaker(each)], max(0, more)


async def _describe(job: WorkflowExecution, before: DigestMark) -> Told:
    """Return a job by its own answer, or by its memo if it gives none."""
    memo = own_memo(await job.memo(), job.run_id)
    is_project = job.workflow_type == "Project"
    status: JobStatus | ProjectStatus | None = None
    with suppress(RPCError, WorkflowQueryFailedError, ValueError):
        handle = activity.client().get_workflow_handle(job.id, run_id=job.run_id)
        answer: dict[str, Any] = await handle.query("status", rpc_timeout=QUERY_TIMEOUT)
        kind = ProjectStatus if is_project else JobStatus
        status = kind.model_validate(answer, extra="ignore")
    word, reason = read_status_value(str(memo.get("status") or ""))
    spent = status.usage.spend if status else before.spent.get(job.id, Spend())
    waiting = status.waiting if status else None
    line = DigestJob(
        id=job.id,
        ending="" if _is_open(job) else _ending(job, status, word),
        reason=waiting.reason if waiting else _waiting_jobs(status) if status else reason,
        command=waiting.command if waiting else f"starter.py show {shell_quoted(job.id)}",
        spent=spent - before.spent.get(job.id, Spend()),
        unproven=status.unproven if status else Spend(),
        is_known=status is not None,
    )
    agent = (status and status.agent) or str(memo.get("agent") or "")
    return "" if is_project else agent, line, spent


def _waiting_jobs(status: JobStatus | ProjectStatus) -> str:
    """Return what jobs of a project wait for while others of its jobs work."""
    running = status.running if isinstance(status, ProjectStatus) else []
    waits = [
        f"{each.waiting} of {each.job}" for each in running if each.waiting not in (None, QUOTA)
    ]
    return first_few(waits, 3)


def _is_open(job: WorkflowExecution) -> bool:
    return job.status in (None, WorkflowExecutionStatus.RUNNING)


def _ending(job: WorkflowExecution, status: JobStatus | ProjectStatus | None, word: str) -> str:
    if isinstance(status, JobStatus) and status.result:
        return status.result.ending_line
    if status and status.result:
        return status.result.status
    if job.status is None or job.status == WorkflowExecutionStatus.COMPLETED:
        return word or "completed"
    return job.status.name.lower().replace("canceled", "cancelled").replace("_", " ")

"""The checks of `doctor` that concern a reachable server."""

import asyncio
import time

from temporalio.api.enums.v1 import IndexedValueType, WorkerVersioningMode
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import PollerInfo
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from cli.checks.check_result import CHECK_TIMEOUT, CheckResult
from cli.jobs import polling
from cli.jobs.job_memo import JOB, PROJECT, TRIAL
from cli.jobs.job_view import job_failure_message
from cli.jobs.lost_notifications import REMEDY, lost_notifications_notice
from cli.jobs.watch import fetch_recent_events
from config.agent_files import load_agent
from engine.connection import task_queue
from protocol.search_attribute_names import NAMES
from protocol.short_text import first_few, one_line

MOST_JOBS = 500
"""Running jobs that are examined."""
RUNNING = f"WorkflowType IN ('{JOB}', '{PROJECT}', '{TRIAL}') AND ExecutionStatus = 'Running'"

VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
PINNED_TO = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")
NO_VERSION = ("", "")
"""Name and build of an unversioned worker."""


async def check_server_namespace(client: Client) -> CheckResult:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    await client.workflow_service.describe_namespace(request, timeout=CHECK_TIMEOUT)
    return CheckResult("namespace", True, client.namespace)


async def check_search_attributes(client: Client) -> CheckResult:
    name = "search attributes"
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        registered = await client.operator_service.list_search_attributes(
            request, timeout=CHECK_TIMEOUT
        )
    except RPCError as error:
        return CheckResult(
            name, True, f"not checked, the server does not list them ({error.message})"
        )
    known = registered.custom_attributes
    missing = [attribute for attribute in NAMES if attribute not in known]
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    if other := [each for each in NAMES if known.get(each, keyword) != keyword]:
        return CheckResult(
            name,
            False,
            f"not of type Keyword: {', '.join(other)} (jobs run, but cannot be filtered by them)",
            "remove these and create them anew with --type Keyword: "
            "temporal operator search-attribute remove "
            + " ".join(f"--name {each}" for each in other),
        )
    if not missing:
        return CheckResult(name, True, ", ".join(NAMES))
    flags = " ".join(f"--name {each} --type Keyword" for each in missing)
    # A plain development server has none.
    return CheckResult(
        name,
        True,
        f"not registered: {', '.join(missing)}, so jobs cannot be filtered by them; to register "
        f"them: temporal operator search-attribute create {flags}",
        off=True,
    )


async def check_worker(client: Client) -> CheckResult:
    queue = await polling.describe_queue(client, task_queue())
    now = time.time()
    newest = max((poller.last_access_time.seconds for poller in queue.pollers), default=now)
    if not -polling.RECENT_SECONDS < now - newest < polling.FORGOTTEN_SECONDS:
        off = f"{abs(now - newest):,.0f} seconds {'ahead of' if now > newest else 'behind'}"
        return CheckResult(
            "worker", False,
            f"whether one polls is not known: the clock here is some {off} the Temporal server's",
            "set the clock of this machine, or of the server",
        )  # fmt: skip
    recent = await polling.list_current_workers(client, task_queue(), queue)
    versions = list(map(_poller_version, recent))
    current = queue.versioning_info.current_deployment_version
    # New jobs run only on workers of this version, or on unversioned workers if it is empty.
    current_version = (
        (current.deployment_name, current.build_id) if current.build_id else NO_VERSION
    )
    if recent and current_version not in versions:
        set_current = "temporal worker deployment set-current-version --deployment-name"
        if current_version == NO_VERSION:
            name, build = versions[0]
            return CheckResult(
                "worker", False, f"version {build} of {name} is not current",
                f"{set_current} {name} --build-id {build}",
            )  # fmt: skip
        name, build = current_version
        return CheckResult(
            "worker", False,
            f"none is of version {build} of {name}, which is current: new jobs wait",
            f"run one with LONGHAUL_DEPLOYMENT={name} and LONGHAUL_BUILD_ID={build}, or make "
            f"current what runs: {set_current} {name} --build-id …, or --unversioned for workers "
            "without a version",
        )  # fmt: skip
    if recent:
        names = ", ".join(sorted(poller.identity for poller in recent))
        roots = polling.worker_roots(recent)
        if len(roots) > 1 and not load_agent("generalist").workspace.remote:
            return CheckResult(
                "worker", False, polling.several_roots_notice(task_queue(), roots), polling.ONE_ROOT
            )
        return CheckResult("worker", True, f"{names} on task queue {task_queue()}")
    return CheckResult("worker", False, f"none polls the task queue {task_queue()}", polling.START)


def _poller_version(poller: PollerInfo) -> tuple[str, str]:
    options = poller.deployment_options
    versioned = options.worker_versioning_mode == VERSIONED
    return (options.deployment_name, options.build_id) if versioned else NO_VERSION


async def check_pinned_jobs(client: Client) -> CheckResult:
    """Check for jobs pinned to a version that no worker runs."""
    name = "pinned jobs"
    query = f"{RUNNING} AND TemporalWorkflowVersioningBehavior = 'Pinned'"
    jobs: dict[tuple[str, str], list[str]] = {}
    try:
        async for job in client.list_workflows(query, limit=MOST_JOBS):
            version = job.typed_search_attributes.get(PINNED_TO) or ""
            jobs.setdefault((job.task_queue, version), []).append(job.id)
    except RPCError as error:
        return CheckResult(
            name, True, f"not checked, the server does not list them ({error.message})"
        )
    polled = set()
    for queue in {queue for queue, _ in jobs}:
        pollers = (await polling.describe_queue(client, queue)).pollers
        newest = max((poller.last_access_time.seconds for poller in pollers), default=0)
        polled |= {
            (queue, ":".join(_poller_version(poller)))
            for poller in pollers
            if newest - poller.last_access_time.seconds < polling.RECENT_SECONDS
        }
    waiting = {version: ids for version, ids in jobs.items() if version not in polled}
    if not waiting:
        return CheckResult(name, True, "none waits for a worker of its version")
    waiting_texts = [
        f"{first_few(ids, 3)} for one of version {version} on task queue {queue}"
        for (queue, version), ids in waiting.items()
    ]
    return CheckResult(
        name, False, f"no worker polls, and so wait: {'; '.join(waiting_texts)}",
        "run workers of these versions, or move each job to the current one: temporal workflow "
        "update-options --workflow-id JOB --versioning-override-behavior auto_upgrade",
    )  # fmt: skip


async def check_workflow_tasks(client: Client) -> CheckResult:
    """Check for jobs whose workflow task fails repeatedly: a bug or a bad deployment."""
    name, (failed, looked_at) = "workflow tasks", await failing_jobs(client)
    if failed:
        return CheckResult(
            name, False, f"failing in {'; '.join(failed)}",
            "correct the code, start workers of the newer version that the jobs ran on, or give "
            "the workers the key that is missing: the jobs go on by themselves",
        )  # fmt: skip
    more = f", the newest {MOST_JOBS}" if looked_at == MOST_JOBS else ""
    return CheckResult(name, True, f"none fails ({looked_at} running jobs{more})")


async def check_notifications(client: Client) -> CheckResult:
    name, lost = "notifications", await lost_notifications_notice(client)
    return CheckResult(name, not lost, lost or "none was lost", REMEDY)


SERVER_CHECKS = (
    check_server_namespace,
    check_search_attributes,
    check_worker,
    check_pinned_jobs,
    check_workflow_tasks,
    check_notifications,
)


async def failing_jobs(client: Client) -> tuple[list[str], int]:
    """Return a text for each failing job, and how many running jobs were examined."""
    jobs: list[str] = []
    async for job in client.list_workflows(RUNNING, limit=MOST_JOBS):
        jobs.append(job.id)  # noqa: PERF401 - an async comprehension hides that this is paged
    several = asyncio.Semaphore(20)

    async def describe_if_failing(job_id: str) -> str | None:
        async with several:
            try:
                description = await client.get_workflow_handle(job_id).describe()
            except RPCError:
                return None
        attempt = description.raw_description.pending_workflow_task.attempt
        return (
            f"{job_id} (attempt {attempt}: {await _task_failure_reason(client, job_id)})"
            if attempt > 1
            else None
        )

    texts = await asyncio.gather(*map(describe_if_failing, jobs))
    return [text for text in texts if text], len(jobs)


async def _task_failure_reason(client: Client, job_id: str) -> str:
    for event in await fetch_recent_events(client, job_id, 20):
        if event.HasField("workflow_task_failed_event_attributes"):
            failure = event.workflow_task_failed_event_attributes.failure
            decoded: BaseException | None = await client.data_converter.decode_failure(failure)
            return task_failure_text(decoded)
    return "it timed out"


def task_failure_text(failure: BaseException | None) -> str:
    """Return the messages of a failure and of its causes.

    The SDK says only that it cannot decode; the cause says what older code does not know.
    """
    messages: list[str] = []
    while failure is not None:
        messages.append(job_failure_message(failure))
        failure = failure.__cause__
    return one_line(": ".join(messages), 200)

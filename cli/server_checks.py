"""The doctor's checks of a reachable server."""

from __future__ import annotations

import time

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType, WorkerVersioningMode
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from cli.check import CHECK_TIMEOUT, Check
from cli.failing_tasks import MOST_JOBS, failing_jobs
from cli.jobs import JOB, PROJECT
from engine.connection import task_queue
from protocol.search_attribute_names import NAMES
from protocol.short_text import first_few

VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
PINNED_TO = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")
NO_VERSION = ("", "")
"""Name and build of an unversioned worker."""
RECENT_SECONDS = 90
"""Age of a current poller's entry: pollers renew it with each poll, at least once a minute."""
FORGOTTEN_SECONDS = 600
"""The server deletes entries after 5 minutes: one that seems older shows a clock difference."""


async def check_server_namespace(client: Client) -> Check:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    await client.workflow_service.describe_namespace(request, timeout=CHECK_TIMEOUT)
    return Check("namespace", True, client.namespace)


async def check_search_attributes(client: Client) -> Check:
    name = "search attributes"
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        registered = await client.operator_service.list_search_attributes(
            request, timeout=CHECK_TIMEOUT
        )
    except RPCError as error:
        return Check(name, True, f"not checked, the server does not list them ({error.message})")
    known = registered.custom_attributes
    missing = [attribute for attribute in NAMES if attribute not in known]
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    if other := [each for each in NAMES if known.get(each, keyword) != keyword]:
        return Check(
            name,
            False,
            f"not of type Keyword: {', '.join(other)} (jobs run, but cannot be filtered by them)",
            "remove these and create them anew with --type Keyword: "
            "temporal operator search-attribute remove "
            + " ".join(f"--name {each}" for each in other),
        )
    if not missing:
        return Check(name, True, ", ".join(NAMES))
    flags = " ".join(f"--name {each} --type Keyword" for each in missing)
    return Check(
        name,
        False,
        f"not registered: {', '.join(missing)} (jobs run, but cannot be filtered by them)",
        f"temporal operator search-attribute create {flags}",
    )


async def check_worker(client: Client) -> Check:
    queue = await _describe_queue(client, task_queue())
    now = time.time()
    newest = max((poller.last_access_time.seconds for poller in queue.pollers), default=now)
    if not -RECENT_SECONDS < now - newest < FORGOTTEN_SECONDS:
        off = f"{abs(now - newest):,.0f} seconds {'ahead of' if now > newest else 'behind'}"
        return Check(
            "worker", False,
            f"whether one polls is not known: the clock here is some {off} the Temporal server's",
            "set the clock of this machine, or of the server",
        )  # fmt: skip
    recent = [
        poller for poller in queue.pollers if now - poller.last_access_time.seconds < RECENT_SECONDS
    ]
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
            return Check(
                "worker", False, f"version {build} of {name} is not current",
                f"{set_current} {name} --build-id {build}",
            )  # fmt: skip
        name, build = current_version
        return Check(
            "worker", False,
            f"none is of version {build} of {name}, which is current: new jobs wait",
            f"run one with LONGHAUL_DEPLOYMENT={name} and LONGHAUL_BUILD_ID={build}, or make "
            f"current what runs: {set_current} {name} --build-id …, or --unversioned for workers "
            "without a version",
        )  # fmt: skip
    if recent:
        names = ", ".join(sorted(poller.identity for poller in recent))
        return Check("worker", True, f"{names} on task queue {task_queue()}")
    return Check(
        "worker", False, f"none polls the task queue {task_queue()}", "run `python worker.py`"
    )


async def _describe_queue(client: Client, name: str) -> DescribeTaskQueueResponse:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=name),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    return await client.workflow_service.describe_task_queue(request, timeout=CHECK_TIMEOUT)


def _poller_version(poller: PollerInfo) -> tuple[str, str]:
    options = poller.deployment_options
    versioned = options.worker_versioning_mode == VERSIONED
    return (options.deployment_name, options.build_id) if versioned else NO_VERSION


async def check_pinned_jobs(client: Client) -> Check:
    """Check for jobs pinned to a version that no worker runs."""
    name = "pinned jobs"
    query = (
        f"WorkflowType IN ('{JOB}', '{PROJECT}') AND ExecutionStatus = 'Running' "
        "AND TemporalWorkflowVersioningBehavior = 'Pinned'"
    )
    jobs: dict[tuple[str, str], list[str]] = {}
    try:
        async for job in client.list_workflows(query, limit=MOST_JOBS):
            version = job.typed_search_attributes.get(PINNED_TO) or ""
            jobs.setdefault((job.task_queue, version), []).append(job.id)
    except RPCError as error:
        return Check(name, True, f"not checked, the server does not list them ({error.message})")
    polled = set()
    for queue in {queue for queue, _ in jobs}:
        pollers = (await _describe_queue(client, queue)).pollers
        newest = max((poller.last_access_time.seconds for poller in pollers), default=0)
        polled |= {
            (queue, ":".join(_poller_version(poller)))
            for poller in pollers
            if newest - poller.last_access_time.seconds < RECENT_SECONDS
        }
    waiting = {version: ids for version, ids in jobs.items() if version not in polled}
    if not waiting:
        return Check(name, True, "none waits for a worker of its version")
    waiting_texts = [
        f"{first_few(ids, 3)} for one of version {version} on task queue {queue}"
        for (queue, version), ids in waiting.items()
    ]
    return Check(
        name, False, f"no worker polls, and so wait: {'; '.join(waiting_texts)}",
        "run workers of these versions, or move each job to the current one: temporal workflow "
        "update-options --workflow-id JOB --versioning-override-behavior auto_upgrade",
    )  # fmt: skip


async def check_workflow_tasks(client: Client) -> Check:
    """Check for jobs whose workflow task fails repeatedly: a bug or a bad deployment."""
    name, (failed, looked_at) = "workflow tasks", await failing_jobs(client)
    if failed:
        return Check(
            name, False, f"failing in {'; '.join(failed)}",
            "correct the code, or give the workers the key that is missing, and restart them: the "
            "jobs go on by themselves",
        )  # fmt: skip
    more = f", the newest {MOST_JOBS}" if looked_at == MOST_JOBS else ""
    return Check(name, True, f"none fails ({looked_at} running jobs{more})")


SERVER_CHECKS = (
    check_server_namespace,
    check_search_attributes,
    check_worker,
    check_pinned_jobs,
    check_workflow_tasks,
)

"""The worker: which workflows and activities it serves, and with which limits."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.client import Client
from temporalio.worker import FixedSizeSlotSupplier, Worker, WorkerDeploymentConfig, WorkerTuner

from engine.connection import ROOT_MARK
from engine.connection import task_queue as default_task_queue
from engine.deployment import worker_build_id
from engine.heartbeat_profile import QuickHeartbeats, heartbeat_interceptors
from engine.slots import ResponsiveSlotSupplier
from engine.workflow_runner import JobWorkflowRunner

if TYPE_CHECKING:
    from activities.checkpoints import Root

GRACE = timedelta(seconds=10)
"""Time for running steps to end after a shutdown has begun."""

SLOTS = 1000
"""Concurrent regular activities of one worker; nearly all of them wait for a model. Others hold a
thread, and threads are created on demand only."""

TASKS = 8
"""Concurrent workflow tasks. They share one interpreter: with more, each would take longer, and
those of many jobs that start at once would exceed the server's time-out."""

LOCAL_SLOTS = 8
"""Concurrent local activities (file tools). They take milliseconds of the same interpreter; more of
them would delay the event loop, and with it the heartbeats of all jobs."""


def build_worker(
    client: Client,
    *,
    root: Root | None = None,
    task_queue: str | None = None,
    workflows: Sequence[type] | None = None,
    activities: Sequence[Callable[..., Any]] | None = None,
    max_cached_workflows: int = 1000,
    grace: timedelta = GRACE,
    deployment: WorkerDeploymentConfig | None = None,
    quick: bool | None = None,
) -> Worker:
    """Build a worker that serves jobs. Run it with `async with` or `await worker.run()`.

    Args:
        client: With the data converter of `engine.converter`.
        root: The workspaces root; required without `activities`.
        task_queue: None for LONGHAUL_TASK_QUEUE.
        workflows: None for all of ours.
        activities: None for all of ours.
        max_cached_workflows: Should exceed the jobs in flight on this worker: an evicted job is
            replayed at its next step, which costs 7 to 9 times as much.
        grace: Time for running steps to end after a shutdown has begun.
        deployment: The version of the code, for worker versioning; None for no versioning.
        quick: Whether lost workers are noticed quickly; None for LONGHAUL_HEARTBEAT.
    """
    if activities is None:
        if root is None:
            raise ValueError("build_worker needs a root or activities")
        activities = job_activities(root)
    return Worker(
        client,
        task_queue=task_queue or default_task_queue(),
        # Commands know by it whether all workers of a queue serve the same root.
        identity=f"{client.identity}{ROOT_MARK}{root.id}" if root else None,
        workflows=job_workflows() if workflows is None else workflows,
        activities=activities,
        activity_executor=ThreadPoolExecutor(SLOTS + LOCAL_SLOTS, thread_name_prefix="step"),
        tuner=WorkerTuner.create_composite(
            workflow_supplier=FixedSizeSlotSupplier(TASKS),
            activity_supplier=ResponsiveSlotSupplier(SLOTS),
            local_activity_supplier=FixedSizeSlotSupplier(LOCAL_SLOTS),
            nexus_supplier=FixedSizeSlotSupplier(1),
        ),
        workflow_runner=JobWorkflowRunner(),
        max_cached_workflows=max_cached_workflows,
        # After a kill, a job's next workflow task waits this long for the dead worker.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=3),
        # Activities send as few heartbeats as they need (`activities.runtime.heartbeats`), and
        # these must not be late.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        default_heartbeat_throttle_interval=timedelta(seconds=1),
        interceptors=heartbeat_interceptors() if quick is None else [QuickHeartbeats()] * quick,
        graceful_shutdown_timeout=grace,
        build_id=None if deployment else worker_build_id(),
        deployment_config=deployment,
    )


def job_workflows() -> list[type]:
    # Imported by name and late, so that mere clients of Temporal do not load the workflows.
    return [
        importlib.import_module("workflows.job").Job,
        importlib.import_module("workflows.project").Project,
        importlib.import_module("workflows.trial").Trial,
        importlib.import_module("workflows.upkeep").LearningWorkflow,
        importlib.import_module("workflows.upkeep").ForgetWorkflow,
        importlib.import_module("workflows.upkeep").DigestWorkflow,
        importlib.import_module("workflows.runtime.notification_delivery").Notify,
    ]


def job_activities(root: Root) -> list[Callable[..., Any]]:
    return list(importlib.import_module("activities.activity_catalogue").all_activities(root))

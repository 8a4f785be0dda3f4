"""The worker: which workflows and activities it serves, and with which limits."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.client import Client
from temporalio.worker import (
    FixedSizeSlotSupplier,
    Worker,
    WorkerDeploymentConfig,
    WorkerTuner,
)

from engine.connection import task_queue as default_task_queue
from engine.sandbox import sandbox_runner
from engine.slots import ResponsiveSlotSupplier

if TYPE_CHECKING:
    from activities.checkpoints import Root

GRACE = timedelta(seconds=10)
"""How long running steps may take to end once a shutdown began."""

SLOTS = 1000
"""Regular activities of one worker at a time: nearly all of them wait for a model. One that does
not wait holds a thread, of which there are no more than are needed."""

TASKS = 8
"""Workflow tasks at a time. They share one interpreter: more of them would only each take longer,
and those of many jobs that start at once longer than the server waits."""

LOCAL_SLOTS = 8
"""File tools at a time. They are over in milliseconds and want the same interpreter: more of them
would keep the event loop, and with it the heartbeats of all jobs, waiting for its turn."""


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
) -> Worker:
    """A worker that serves jobs. Run it with `async with` or `await worker.run()`.

    Args:
        client: With the data converter of `engine.converter`.
        root: The workspaces root; needed unless `activities` are given.
        task_queue: None takes LONGHAUL_TASK_QUEUE.
        workflows: None takes all of ours.
        activities: None takes all of ours.
        max_cached_workflows: Should exceed the jobs in flight on this worker: an evicted job is
            replayed at its next step, which costs 7 to 9 times as much.
        grace: How long running steps may take to end once a shutdown began.
        deployment: Which version of the code this is, for worker versioning; None: none.
    """
    if activities is None:
        if root is None:
            raise ValueError("build_worker needs a root or activities")
        activities = job_activities(root)
    return Worker(
        client,
        task_queue=task_queue or default_task_queue(),
        workflows=job_workflows() if workflows is None else workflows,
        activities=activities,
        activity_executor=ThreadPoolExecutor(SLOTS + LOCAL_SLOTS, thread_name_prefix="step"),
        tuner=WorkerTuner.create_composite(
            workflow_supplier=FixedSizeSlotSupplier(TASKS),
            activity_supplier=ResponsiveSlotSupplier(SLOTS),
            local_activity_supplier=FixedSizeSlotSupplier(LOCAL_SLOTS),
            nexus_supplier=FixedSizeSlotSupplier(1),
        ),
        workflow_runner=sandbox_runner(),
        max_cached_workflows=max_cached_workflows,
        # After a kill, a job's next workflow task waits this long for the dead worker.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=3),
        # A cancellation reaches an activity with the answer to a heartbeat, so none is held back
        # longer than this.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        default_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=grace,
        deployment_config=deployment,
    )


def job_workflows() -> list[type]:
    """The workflow types of this worker."""
    # Imported by name and late: what only talks to Temporal does not load the workflows.
    return [
        importlib.import_module("workflows.job").Job,
        importlib.import_module("workflows.project").Project,
        importlib.import_module("workflows.learning").LearningWorkflow,
        importlib.import_module("workflows.forgetting").ForgetWorkflow,
        importlib.import_module("workflows.notification").Notify,
    ]


def job_activities(root: Root) -> list[Callable[..., Any]]:
    """Every activity, bound to the workspaces root."""
    return list(importlib.import_module("activities.catalogue").all_activities(root))

"""A job of Longhaul."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from temporalio.client import WorkflowFailureError

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from benchmarks.actions import settled_action_counts
from benchmarks.compare.adapter_task import KEY, AdapterTask, Outcome, failed_adapter_outcome
from benchmarks.compare.scenario_job import ScenarioJob, write_scenario_agent
from benchmarks.compare.temporal_adapters import (
    QUEUE,
    WORKFLOW,
    measure_adapter_history,
    outlast_server,
    serve_temporal_for_adapter,
    start_adapter_workflow,
)
from benchmarks.drift import closed_drift_job
from engine.connection import connect_client
from engine.service import build_worker


async def run_longhaul(task: AdapterTask) -> Outcome:
    root = Root.open(Path(task.folder) / "root", create=True)
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, max_retries=0)
    start: dict[str, Any] = {
        "agent": "generalist",
        "instructions": task.prompt,
        # The endpoint's models have no verdicts to give.
        "set": {"review": None},
    }
    if task.scenario:
        start = write_scenario_agent(Path(task.folder) / "config", task)
    # The worker decides on its model; a start may name configured ones only.
    os.environ |= {"LONGHAUL_MODEL": task.model, "OPENAI_BASE_URL": task.base_url}
    activities = all_activities(root, connect=lambda _: client)
    workflows = [ScenarioJob] if task.scenario else None
    async with (
        serve_temporal_for_adapter(connect=connect_client) as running,
        build_worker(
            running.client, root=root, task_queue=QUEUE, workflows=workflows, activities=activities
        ),
    ):
        handle = await start_adapter_workflow(running, "Job", start)
        ended, error, checkpoint = "finished", "", ""
        try:
            async with asyncio.timeout(task.cap):
                status, waiting, checkpoint, _ = await outlast_server(
                    partial(closed_drift_job, handle)
                )
            if status != "completed":
                ended, error = "stopped", f"{status}: {waiting}"
        except TimeoutError:
            ended, checkpoint = "time", (await handle.query("status"))["checkpoint"]
            await handle.terminate()
        except WorkflowFailureError as failure:
            return failed_adapter_outcome(failure)
        if task.scenario:
            return Outcome(ended, error)
        actions = (await settled_action_counts(running.metrics_port)).total()
        recorded, runs = await measure_adapter_history(running.client, WORKFLOW, "model_call")
    store = open_checkpoints(root, WORKFLOW)
    store.pack()
    files = Snapshot.load(store, checkpoint).files
    outputs = {entry.path: files.read_entry(entry).decode() for entry in files.walk("output")}
    size = sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file())
    return Outcome(ended, error, recorded, size, runs, actions, outputs)

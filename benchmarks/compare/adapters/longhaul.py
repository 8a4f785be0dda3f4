"""A job of Longhaul."""

import asyncio
import os
from pathlib import Path

from openai import AsyncOpenAI
from temporalio.client import WorkflowFailureError

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from benchmarks.actions import settled_action_counts
from benchmarks.compare.adapter_task import KEY, AdapterTask, Outcome, failed_adapter_outcome
from benchmarks.compare.temporal_adapters import QUEUE, WORKFLOW, measure_adapter_history
from benchmarks.drift import closed_drift_job
from engine.development import development_server
from engine.free_ports import free_port
from engine.service import build_worker


async def run_longhaul(task: AdapterTask) -> Outcome:
    root = Root.open(Path(task.folder) / "root", create=True)
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, max_retries=0)
    start = {
        "agent": "generalist",
        "instructions": task.prompt,
        # The endpoint's models have no verdicts to give.
        "set": {"review": None},
    }
    # The worker decides on its model; a start may name configured ones only.
    os.environ |= {"LONGHAUL_MODEL": task.model, "OPENAI_BASE_URL": task.base_url}
    activities = all_activities(root, connect=lambda _: client)
    port = free_port()
    async with (
        development_server(ui=False, metrics_port=port) as running,
        build_worker(running.client, root=root, task_queue=QUEUE, activities=activities),
    ):
        handle = await running.client.start_workflow(
            "Job", start, id=WORKFLOW, task_queue=QUEUE, result_type=dict
        )
        ended, error, checkpoint = "finished", "", ""
        try:
            async with asyncio.timeout(task.cap):
                status, waiting, checkpoint, _ = await closed_drift_job(handle)
            if status != "completed":
                ended, error = "stopped", f"{status}: {waiting}"
        except TimeoutError:
            ended, checkpoint = "time", (await handle.query("status"))["checkpoint"]
            await handle.terminate()
        except WorkflowFailureError as failure:
            return failed_adapter_outcome(failure)
        actions = (await settled_action_counts(port)).total()
        recorded, runs = await measure_adapter_history(running.client, WORKFLOW, "model_call")
    store = open_checkpoints(root, WORKFLOW)
    store.pack()
    files = Snapshot.load(store, checkpoint).files
    outputs = {entry.path: files.read_entry(entry).decode() for entry in files.walk("output")}
    size = sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file())
    return Outcome(ended, error, recorded, size, runs, actions, outputs)

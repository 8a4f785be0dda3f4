"""A second start under a used id, as other clients of Temporal allow it."""

from __future__ import annotations

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDReusePolicy

from activities.checkpoints import Root
from benchmarks.zero_cost import ZeroCost
from cli.jobs.job_memo import JOB
from cli.jobs.job_view import view_job
from tests.brief import BRIEFEST
from tests.workflows.serving import serving

START = {"agent": "generalist", "instructions": "Keep a log.", "set": BRIEFEST}


async def test_a_refused_second_start_does_not_hide_the_job(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, ZeroCost(steps=2, todos=1)) as jobs:
        handle = await jobs.start(START)
        assert (await jobs.result(handle))["status"] == "completed"
        again = await temporal.start_workflow(
            JOB, START, id=handle.id, task_queue=jobs.queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        )  # fmt: skip
        with pytest.raises(WorkflowFailureError):
            await again.result()
        view = await view_job(temporal, handle.id)
    assert view.status.status == "completed"
    assert view.run_id != again.result_run_id

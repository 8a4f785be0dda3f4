"""An independent server, with any model: `LONGHAUL_TEST_ENDPOINT=http://…/v1`.

Whatever a weak model does, the job ends in a clear state, never a crash. See docs/development.md.
"""

import os

import httpx2
import pytest
from temporalio.client import Client

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from activities.model.endpoint import connect_endpoint
from engine.service import build_worker
from tests.workflows.serving import Jobs
from workflows.rules.endpoint_remedies import NO_CALL

ENDPOINT = os.environ.get("LONGHAUL_TEST_ENDPOINT")
pytestmark = pytest.mark.skipif(not ENDPOINT, reason="LONGHAUL_TEST_ENDPOINT is not set")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("agent", ["generalist", "small"])
async def test_a_job_with_its_model_comes_to_a_clear_state(
    temporal: Client, root: Root, agent: str, api: str, stream: bool
) -> None:
    if api == "responses" and httpx2.post(f"{ENDPOINT}/responses", json={}).status_code == 404:
        pytest.skip(f"{ENDPOINT} has no Responses API")
    settings = {
        "model.api": api,
        "model.base_url": ENDPOINT,
        "model.name": os.environ.get("LONGHAUL_TEST_MODEL", "tiny"),
        "model.max_output_tokens": 100,
        "model.stream": stream,
        "limits.job.model_calls": 12,
    }
    queue = f"other-{agent}-{api}-{stream}"
    activities = all_activities(root, connect=connect_endpoint)
    async with build_worker(temporal, root=root, task_queue=queue, activities=activities):
        jobs = Jobs(temporal, root, queue)
        start = {"agent": agent, "instructions": "Write a guide on tea.", "set": settings}
        handle = await jobs.start(start)
        status = await jobs.until(handle, status=lambda word: word != "running")
        print(status["status"], status["waiting"], status["usage"], status["notices"][-3:])
        assert status["usage"]["model_calls"] >= 3
        assert status["usage"]["completion_tokens"] > 0
        if status["waiting_for"] == "endpoint":
            # The model called no tool at all; the server was not at fault.
            assert status["usage"]["tool_calls"] == 0
            assert NO_CALL in status["waiting"]["remedy"]
        elif status["status"] == "waiting":
            assert status["waiting_for"] in {
                "budget",
                "stuck",
                "rewinds",
                "review",
                "clarification",
            }
        await handle.terminate()

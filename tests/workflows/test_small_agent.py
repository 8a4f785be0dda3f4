"""The agent for small models, and requests that an endpoint refuses without saying why."""

from __future__ import annotations

import json
from pathlib import Path

from temporalio.client import Client

from activities.checkpoints import Root
from rehearsal import Failure, Reply
from rehearsal.wire import Answer, Request
from tests.workflows.serving import serving

NAMED = {"model.name": "first", "model.base_url": "http://model/v1"}


def bare(name: str, **arguments: object) -> Reply:
    """Return a call as a small model writes it."""
    return Reply(f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```")


async def test_a_small_model_completes_a_task_in_three_calls(temporal: Client, root: Root) -> None:
    replies = [
        bare("write_file", path="output/answer.md", content="Paris"),
        bare("todo_complete", notes="The answer is in the file."),
        bare("job_complete", deliverables=["output/answer.md"], summary="Paris", confidence=0.9),
    ]
    seen: list[Request] = []

    def model(request: Request) -> Answer:
        seen.append(request)
        return replies[min(len(seen), len(replies)) - 1]

    async with serving(temporal, root, model) as jobs:
        start = {"agent": "small", "instructions": "Name the capital of France.", "set": NAMED}
        handle = await jobs.start(start)
        result = await jobs.result(handle)
        folder = Path(jobs.snapshot(handle, result["checkpoint"]).read_text("output/answer.md"))
    assert (result["status"], str(folder)) == ("completed", "Paris")
    assert len(seen) == 3
    assert all(request["parallel_tool_calls"] is False for request in seen)
    assert all("traces" not in json.dumps(request["tools"]) for request in seen)


async def test_a_large_request_that_is_refused_is_tried_once_compacted(
    temporal: Client, root: Root
) -> None:
    sizes: list[int] = []

    def model(request: Request) -> Answer:
        if not request.get("tools"):
            return Reply("The log was kept.")
        sizes.append(len(json.dumps(request)))
        if sizes[-1] > 70_000:
            return Failure(400, "Bad request")
        text = f"{len(sizes)} " * 4_000
        return Reply(calls=[("write_file", {"path": f"notes/{len(sizes)}.md", "content": text})])

    async with serving(temporal, root, model) as jobs:
        start = {"agent": "generalist", "instructions": "Keep a log.", "set": NAMED}
        handle = await jobs.start(start)
        status = await jobs.until(handle, step=lambda step: step > 9)
        await handle.terminate()
    assert status["waiting"] is None
    assert max(sizes) > 70_000


async def test_what_is_refused_compacted_too_says_so(temporal: Client, root: Root) -> None:
    requests: list[Request] = []

    def model(request: Request) -> Answer:
        if not request.get("tools"):
            return Reply("The log was kept.")
        requests.append(request)
        if len(requests) > 4:
            return Failure(400, "Bad request")
        text = f"{len(requests)} " * 8_000
        return Reply(calls=[("write_file", {"path": f"notes/{len(requests)}.md", "content": text})])

    async with serving(temporal, root, model) as jobs:
        start = {"agent": "generalist", "instructions": "Keep a log.", "set": NAMED}
        handle = await jobs.start(start)
        status = await jobs.until(handle, waiting_for="endpoint")
        await handle.terminate()
    assert len(requests) == 6
    assert "refused the request (400): Bad request" in status["waiting"]["message"]
    assert "So did it after the context was compacted." in status["waiting"]["message"]

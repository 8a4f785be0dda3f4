"""Try an agent without a model: a function plays it, and its endpoint fails on the way.

It needs a server alone, such as that of `make demo ARGS=--keep`, and runs from the checkout as
`.venv/bin/python -m examples.python.02_scripted_model`.
"""

import asyncio
import os
import tempfile
import uuid
from pathlib import Path

from activities.checkpoints import Root
from engine.connection import connect_client
from engine.service import build_worker
from protocol.endings import JobResult
from rehearsal import Answer, Failure, Request, rehearse
from rehearsal.server import ModelServer


class FailingModel:
    """The rehearsal model behind an endpoint that refuses the second request."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        return Failure(503) if len(self.requests) == 2 else rehearse(request)


async def try_agent(agent: str, instructions: str, folder: Path) -> tuple[JobResult, int]:
    """Run a job in a worker of this process; return its result and the requests that it took."""
    client = await connect_client()
    queue = job = f"trial-{uuid.uuid4().hex[:6]}"
    model = FailingModel()
    with ModelServer(model) as server:
        os.environ |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        async with build_worker(client, root=Root.open(folder, create=True), task_queue=queue):
            start = {"agent": agent, "instructions": instructions}
            ended = await client.execute_workflow("Job", start, id=job, task_queue=queue)
    return JobResult.model_validate(ended), len(model.requests)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        task = "Write a guide on brewing tea."
        result, requests = asyncio.run(try_agent("generalist", task, Path(scratch)))
    print(result.ending_line, "·", requests, "requests, one of which was refused")

"""A model that answers some calls differently."""

import asyncio
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from rehearsal import rehearse
from rehearsal.wire import Answer, Hang, Model, Request
from tests.workflows.serving import Jobs


class Deviating:
    """The rehearsal model, or another one, except that the calls of these numbers get these
    answers: `Deviating({4: Reply("…")})`.

    What it was asked is in `requests`, from 1; summaries are not counted.
    """

    def __init__(self, answers: dict[int, Answer], model: Model = rehearse) -> None:
        self.answers = answers
        self._model = model
        self.requests: dict[int, Request] = {}
        self._hanging = asyncio.Event()

    def __call__(self, request: Request) -> Answer:
        if not request.get("tools"):
            return self._model(request)
        number = len(self.requests) + 1
        self.requests[number] = request
        answer = self.answers.get(number) or self._model(request)
        if isinstance(answer, Hang):
            self._hanging.set()
        return answer

    async def hangs(self) -> None:
        """Wait until an answer is a `Hang`, at which its job stops."""
        async with asyncio.timeout(60):
            await self._hanging.wait()

    def told(self, number: int) -> str:
        """Return the last message of a request: the todo list and what may follow it."""
        return str(self.requests[number]["messages"][-1]["content"])

    def results(self, number: int) -> list[str]:
        """Return the results of the tool calls before a request."""
        messages: list[dict[str, Any]] = self.requests[number]["messages"]
        return [str(each["content"]) for each in messages if each["role"] == "tool"]


async def enough(jobs: Jobs, handle: WorkflowHandle[Any, Any], steps: int) -> dict[str, Any]:
    """Return the status after that many model calls, and cancel the job, which has done enough."""
    status = await jobs.until(handle, step=lambda step: step >= steps)
    try:
        await handle.signal("cancel", {})
    except RPCError as error:
        # The job may have ended since this request, if it was on its last steps.
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    return status

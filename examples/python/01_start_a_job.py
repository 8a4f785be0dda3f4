"""Start a job, follow its todo list, say something to it, and read its result.

It needs a server and a worker, such as those of `make demo ARGS=--keep`, and runs from the checkout
as `.venv/bin/python -m examples.python.01_start_a_job`.
"""

import asyncio
import uuid

from engine.connection import connect_client, task_queue
from protocol.endings import JobResult
from protocol.payloads import JobStart

START = JobStart(
    agent="generalist",
    instructions="Write a guide on brewing tea. It must name a temperature for green tea.",
)


async def run_job(start: JobStart) -> JobResult:
    """Start a job, print each todo as it comes up, and return the result."""
    client = await connect_client()
    handle = await client.start_workflow(
        "Job",
        start.model_dump(mode="json", exclude_defaults=True),
        id=f"tea-{uuid.uuid4().hex[:6]}",
        task_queue=task_queue(),
    )
    await handle.signal("tell", {"text": "Degrees Celsius, please."})
    ended = asyncio.create_task(handle.result())
    shown = ""
    while not ended.done():
        await asyncio.wait([ended], timeout=0.5)
        todos = (await handle.query("status"))["todos"]
        current = next((todo["content"] for todo in todos if todo["status"] == "current"), shown)
        if current != shown:
            print("now:", current)
            shown = current
    return JobResult.model_validate(await ended)


if __name__ == "__main__":
    result = asyncio.run(run_job(START))
    print(result.ending_line, "·", result.summary)
    for path in result.deliverables:
        print("  ", path)

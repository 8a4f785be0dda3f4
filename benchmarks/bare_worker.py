"""`python -m benchmarks.bare_worker`: a process that runs bare workflows until it is killed."""

import asyncio
import gc
import os

from temporalio.worker import Worker

from benchmarks.bare_engine import Bare, do_nothing, do_nothing_locally
from engine.connection import connect_client
from engine.service import SLOTS


async def serve_bare_workflows(queue: str) -> None:
    """Serve the queue, with as many slots as our worker has."""
    async with Worker(
        await connect_client(),
        task_queue=queue,
        workflows=[Bare],
        activities=[do_nothing, do_nothing_locally],
        max_concurrent_activities=SLOTS,
        max_cached_workflows=SLOTS,
    ):
        print("serving", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    # As our worker does.
    gc.freeze()
    asyncio.run(serve_bare_workflows(os.environ["LONGHAUL_TASK_QUEUE"]))

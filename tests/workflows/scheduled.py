"""A schedule that fires every second, on the real server, until a test's condition holds."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from cli.schedules.service_schedules import upsert_service_schedule
from tests.workflows.serving import Jobs


async def fired(
    jobs: Jobs, workflow: str, predicate: Callable[[dict[str, Any]], bool]
) -> tuple[datetime, dict[str, Any]]:
    """Return the end of the first run with such a result, and the result."""
    name = f"{workflow}-{jobs.queue}"
    # Created and then changed, as by a person who reconsiders.
    await upsert_service_schedule(jobs.client, name, workflow, timedelta(days=1), jobs.queue)
    await upsert_service_schedule(jobs.client, name, workflow, timedelta(seconds=1), jobs.queue)
    handle = jobs.client.get_schedule_handle(name)
    try:
        async with asyncio.timeout(60):
            while True:
                for action in (await handle.describe()).info.recent_actions:
                    begun: Any = action.action
                    run = jobs.client.get_workflow_handle(
                        begun.workflow_id, run_id=begun.first_execution_run_id, result_type=dict
                    )
                    if predicate(result := await run.result()):
                        ended = (await run.describe()).close_time
                        assert ended
                        return ended, result
                await asyncio.sleep(0.2)
    finally:
        await handle.delete()

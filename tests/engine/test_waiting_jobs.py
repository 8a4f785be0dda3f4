"""The number of waiting jobs, as the server counts them."""

import asyncio
from collections import Counter

from activities.checkpoints import Root
from engine.development import development_server
from engine.waiting_jobs import count_waiting_jobs
from tests.workflows.serving import serving
from tests.workflows.team import Team, project


async def test_a_project_counts_its_job_that_waits_and_not_itself(root: Root) -> None:
    ask = ("request_clarification", {"question": "Green or black?", "default": "green"})
    start = project("pipeline", stages=[{"agent": "generalist", "task": "Draft it."}])
    async with development_server(ui=False) as running:
        model = Team({"Draft it": lambda told: [ask]})
        async with serving(running.client, root, model) as jobs:
            handle = await jobs.start(start, kind="Project")
            await jobs.until(handle, waiting_for="clarification")
            # Visibility follows with a short delay.
            query = "LonghaulStatus = 'waiting: clarification'"
            for _ in range(200):
                if (await running.client.count_workflows(query)).count == 2:
                    break
                await asyncio.sleep(0.1)
            counts = await count_waiting_jobs(running.client)
            assert counts == Counter({("Job", "clarification"): 1})
            await handle.signal("cancel", {})

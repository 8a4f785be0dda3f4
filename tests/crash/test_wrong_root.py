"""A worker with the wrong workspaces root is refused, says so, and does no harm."""

import asyncio
from contextlib import suppress
from typing import Any

from temporalio.client import WorkflowQueryFailedError

from activities.checkpoints import Root
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.site import PATIENCE, Site
from tests.crash.trial import ended_as, opened, some_steps


async def test_the_job_waits_with_the_explanation_and_goes_on_with_the_right_worker(
    begun: Begun, undisturbed: Site
) -> None:
    ended_as(undisturbed, await begun(trial))


async def trial(place: Place) -> Site:
    elsewhere = Root.open(place.folder / "elsewhere", create=True)
    site = Site("misled", place.folder, place.workers, place.temporal, [Ledger("Ada")])
    async with opened(site):
        await some_steps(site)
        site.worker.drain()
        site.start_worker(elsewhere.path)
        waiting = await until_waiting(site)
        assert waiting["reason"] == "storage"
        assert str(elsewhere.path) in waiting["message"]
        assert site.root.id in waiting["message"]
        assert "LONGHAUL_WORKSPACES" in waiting["message"]
        assert [path.name for path in elsewhere.path.iterdir()] == [".longhaul"]
        assert not list((elsewhere.path / ".longhaul" / "checkpoints").iterdir())

        site.worker.kill()
        site.start_worker()
        await site.handles["Ada"].signal("resume")
        await site.finish()
    return site


async def until_waiting(site: Site) -> dict[str, Any]:
    """Wait until the job waits; return its reason."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(WorkflowQueryFailedError):
                waiting: dict[str, Any] = (await site.handles["Ada"].query("status"))["waiting"]
                if waiting:
                    return waiting
            await asyncio.sleep(0.2)

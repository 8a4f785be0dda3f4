"""Takes pictures of a job in progress for the documentation: `make screenshot`.

It shows the job in Temporal's Web UI and in its report. Server, worker and job are real; the job is
slowed down so that it is still running. Needs a Chromium on PATH and the package playwright.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
from openai import AsyncOpenAI
from playwright.async_api import async_playwright
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from activities.catalogue import all_activities
from cli.demo import DOCUMENT, INSTRUCTIONS
from cli.job_input import job_input, start_workflow
from cli.report.gather import gather_report
from cli.report.page import render_page as report_page
from engine.connection import job_ui_link
from engine.development import development_server
from engine.process import exit_worker_process
from engine.root import open_root
from engine.service import build_worker
from rehearsal import RehearsalTransport, rehearse

IMAGES = Path(__file__).parent.parent / "docs" / "images"
JOB = "records-policy"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1440, "height": 1100}
SETTLED_MILLISECONDS = 2000
"""Milliseconds to wait for a running job's page, which never becomes idle."""
MODEL_SECONDS = 0.3


async def main() -> None:
    """Start everything, wait until there is something to see, take the pictures."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.exit("no Chromium on PATH; on Debian: apt install chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Documents are staged below the root of this environment.
        os.environ["LONGHAUL_WORKSPACES"] = folder
        root = open_root(Path(folder))
        async with development_server() as running:
            served = all_activities(root, lambda _: _start_slow_model())
            async with build_worker(running.client, root=root, activities=served):
                handle = await _job_with_something_to_see(running.client)
                link = job_ui_link(JOB, base=running.ui)
                run = (await handle.describe()).run_id
                report = Path(folder) / "report.html"
                report.write_text(report_page(await gather_report(running.client, JOB)))
                await _take_screenshots(browser, f"{link}/{run}", report)
                await handle.signal("cancel", {"reason": "the pictures are taken"})
                with suppress(WorkflowFailureError):
                    await handle.result()


def _start_slow_model() -> AsyncOpenAI:
    transport = RehearsalTransport(rehearse, delay=MODEL_SECONDS)
    return AsyncOpenAI(
        base_url="http://rehearsal/v1",
        api_key="rehearsal",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )


async def _job_with_something_to_see(client: Client) -> WorkflowHandle[Any, Any]:
    # Keep the job in one run, so that no picture shows a continued one.
    settings = ["limits.history_events=10000"]
    await start_workflow(
        client, JOB, job_input("creator", INSTRUCTIONS, [str(DOCUMENT)], [], settings)
    )
    handle = client.get_workflow_handle(JOB)
    while True:
        status = await handle.query("status")
        done = sum(todo["status"] == "completed" for todo in status.get("todos", []))
        if status["phase"] and status["phase"]["number"] == 4 and done >= 2:
            return handle
        await asyncio.sleep(0.2)


async def _take_screenshots(browser: str, job: str, report: Path) -> None:
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            # The browser's sandbox refuses to run as root, as in containers.
            executable_path=browser,
            chromium_sandbox=os.getuid() != 0,
        )
        page = await chromium.new_page(viewport=SIZE)
        await page.goto(f"{job}/user-metadata", wait_until="domcontentloaded")
        # The UI shows Markdown in a frame.
        await page.frame_locator("iframe").get_by_text("Progress").wait_for()
        await page.wait_for_timeout(SETTLED_MILLISECONDS)
        await page.screenshot(path=IMAGES / "temporal-web.png")
        await page.set_viewport_size({"width": 1440, "height": 1400})
        await page.goto(f"{job}/history", wait_until="domcontentloaded")
        await page.get_by_text("Compact").click()
        await page.mouse.move(0, 0)
        await page.wait_for_timeout(SETTLED_MILLISECONDS)
        top = await page.get_by_text("Compact").bounding_box()
        shown = {"x": 255, "y": top["y"] - 20, "width": 1185, "height": 560}
        await page.screenshot(path=IMAGES / "temporal-web-history.png", clip=shown)
        await page.set_viewport_size({"width": 1060, "height": 1060})
        await page.goto(report.as_uri())
        await page.screenshot(path=IMAGES / "report.png")
        await chromium.close()


if __name__ == "__main__":
    asyncio.run(main())
    exit_worker_process(0)

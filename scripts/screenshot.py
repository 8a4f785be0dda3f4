"""Takes the pictures of the documentation: `make screenshot`.

It shows a job in progress in Temporal's Web UI, in a terminal and in its report, then the document
that it has marked, and a project. Server, worker and jobs are real; the model is slowed down so
that the job is still running. Needs a Chromium on PATH and the package playwright.
"""

import asyncio
import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from openai import AsyncOpenAI
from playwright.async_api import Page, async_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from temporalio.client import Client, WorkflowHandle

from activities.activity_catalogue import all_activities
from cli.demo import DOCUMENT, INSTRUCTIONS
from cli.output import FAILED, OK
from cli.report.html_page import render_html_page as report_page
from cli.report.report_builder import build_report
from cli.start.job_input import job_input
from cli.start.job_start import start_job
from engine.development import development_server
from engine.root_location import open_workspaces_root
from engine.service import build_worker
from engine.web_ui import job_web_ui_link
from engine.worker_process import exit_worker_process
from rehearsal import RehearsalTransport, rehearse

IMAGES = Path(__file__).parent.parent / "docs" / "images"
JOB = "records-policy"
PROJECT = "measures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1440, "height": 1100}
SETTLED_MILLISECONDS = 2000
"""Milliseconds to wait for a running job's page, which never becomes idle."""
MODEL_SECONDS = 0.3
TERMINAL_COLUMNS = 100
FRAMES_TO_WAIT_FOR = 2
TERMINAL_PAGE = """<meta charset="utf-8"><body style="margin: 0">
<pre style="background: {background}; color: {foreground}; display: inline-block; margin: 0;
padding: 16px; font: 15px/1.17 'DejaVu Sans Mono', monospace">{code}</pre></body>"""


async def take_pictures() -> None:
    """Start everything, wait until there is something to see, take the pictures."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.exit("no Chromium on PATH; on Debian: apt install chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Documents are staged below the root of this environment.
        os.environ["LONGHAUL_WORKSPACES"] = folder
        root = open_workspaces_root(Path(folder))
        async with development_server() as running:
            served = all_activities(root, lambda _: _slow_screenshot_model())
            async with build_worker(running.client, root=root, activities=served):
                handle = await _start_screenshot_job(running.client)
                link = job_web_ui_link(JOB, base=running.ui)
                run = (await handle.describe()).run_id
                report = Path(folder) / "report.html"
                report.write_text(report_page(await build_report(running.client, JOB)))
                terminal = Path(folder) / "terminal.html"
                frame = await asyncio.to_thread(_capture_watch_frame, running.address)
                terminal.write_text(_terminal_screenshot_html(frame))
                await _take_screenshots(browser, f"{link}/{run}", report, terminal)
                await handle.result()
                marked = await _run_starter(
                    running.address,
                    "requirements",
                    "export",
                    "--document",
                    DOCUMENT.name,
                    "--format",
                    "html",
                )
                await _take_page_screenshot(browser, marked, "marked-document")
                await _run_starter(
                    running.address, "project", "examples/projects/features.yaml",
                    "--id", PROJECT, "--wait",
                )  # fmt: skip
                project = report_page(await build_report(running.client, PROJECT))
                await _take_page_screenshot(browser, project, "project")


def _slow_screenshot_model() -> AsyncOpenAI:
    transport = RehearsalTransport(rehearse, delay=MODEL_SECONDS)
    return AsyncOpenAI(
        base_url="http://rehearsal/v1",
        api_key="rehearsal",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )


async def _start_screenshot_job(client: Client) -> WorkflowHandle[Any, Any]:
    # Keep the job in one run, so that no picture shows a continued one.
    settings = ["limits.history_events=10000"]
    await start_job(client, JOB, job_input("creator", INSTRUCTIONS, [str(DOCUMENT)], [], settings))
    handle = client.get_workflow_handle(JOB)
    while True:
        status = await handle.query("status")
        done = sum(todo["status"] == "completed" for todo in status.get("todos", []))
        if status["phase"] and status["phase"]["number"] == 4 and done >= 2:
            return handle
        await asyncio.sleep(0.2)


def _capture_watch_frame(server: str) -> str:
    """Run `starter.py watch` in a pseudo-terminal and return its last frame with its colours."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(TERMINAL_COLUMNS), "LINES": "40", "TERM": "xterm-256color"}
    watch = subprocess.Popen(
        [sys.executable, "starter.py", "watch", JOB],
        cwd=IMAGES.parent.parent,
        env=os.environ | size | {"TEMPORAL_ADDRESS": server},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        # The first frame comes before the job's status is known.
        while shown.count("╯".encode()) < FRAMES_TO_WAIT_FOR:
            shown += os.read(ours, 65_536)
    finally:
        watch.kill()
        watch.wait()
        os.close(ours)
    text = shown.decode(errors="ignore").replace("\r\n", "\n")
    frame = text.rpartition("╯")[0].rpartition("╭")[2]
    return f"$ starter watch {JOB}\n╭{frame}╯"


async def _run_starter(server: str, *arguments: str) -> str:
    """Run `starter.py` and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "starter.py",
        *arguments,
        cwd=IMAGES.parent.parent,
        env=os.environ | {"TEMPORAL_ADDRESS": server},
        stdout=subprocess.PIPE,
    )
    shown, _ = await process.communicate()
    # The rehearsal model cannot make one of the project's features, which the picture shows.
    if process.returncode not in (OK, FAILED):
        sys.exit(f"starter.py {' '.join(arguments)} ended with {process.returncode}")
    return shown.decode()


def _terminal_screenshot_html(frame: str) -> str:
    console = Console(record=True, width=TERMINAL_COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(frame))
    return console.export_html(theme=MONOKAI, code_format=TERMINAL_PAGE, inline_styles=True)


@asynccontextmanager
async def _open_browser_page(browser: str) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            # The browser's sandbox refuses to run as root, as in containers.
            executable_path=browser,
            chromium_sandbox=os.getuid() != 0,
        )
        yield await chromium.new_page(viewport=SIZE)
        await chromium.close()


async def _take_page_screenshot(browser: str, html: str, name: str) -> None:
    async with _open_browser_page(browser) as page:
        await page.set_viewport_size({"width": 1060, "height": 1060})
        await page.set_content(html)
        # Of a marked document, what is marked; the first is in the legend.
        await page.evaluate("document.querySelectorAll('mark')[1]?.scrollIntoView()")
        await page.screenshot(path=IMAGES / f"{name}.png")


async def _take_screenshots(browser: str, job: str, report: Path, terminal: Path) -> None:
    async with _open_browser_page(browser) as page:
        await page.goto(f"{job}/user-metadata", wait_until="domcontentloaded")
        # The UI shows Markdown in a frame.
        await page.frame_locator("iframe").get_by_text("tactical").first.wait_for()
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
        await page.goto(terminal.as_uri())
        await page.locator("pre").screenshot(path=IMAGES / "terminal.png")


if __name__ == "__main__":
    asyncio.run(take_pictures())
    exit_worker_process(0)

"""A job that looks at a page: a real browser, by way of a public MCP server, over both APIs."""

import base64
import os
import re
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from temporalio.client import Client

from activities.checkpoints import Root
from rehearsal import Reply, Request
from rehearsal.request_view import RequestView, parse_request_view
from tests.activities.mcp.serving import FETCHED
from tests.http_server import Handler, served
from tests.provider.server import Provider, ProviderTransport
from tests.provider.strict import Responses
from tests.soak import soak
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, job
from tests.workflows.team import Team, answer, project, write

CHROMIUM = shutil.which("chromium")
PAGE = b"<html><body style='margin:0;background:rgb(0,128,0)'><h1>Tea</h1></body></html>"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not there: on Debian apt install it"),
    pytest.mark.skipif(
        not (FETCHED / "playwright-mcp").exists(), reason="npm has not fetched playwright-mcp"
    ),
]


class Page(Handler):
    def do_GET(self) -> None:
        self.give(PAGE)


def browser(folder: str) -> dict[str, Any]:
    """Return the configuration of the server that drives the browser."""
    options = ["--headless", "--isolated", "--executable-path", str(CHROMIUM)]
    options += ["--output-dir", folder, *(["--no-sandbox"] if os.getuid() == 0 else [])]
    return {"command": [str(FETCHED / "playwright-mcp"), *options], "start_seconds": 60}


class Looking:
    """Opens the page, takes a picture of it, looks at the picture, and names its colour."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.seen: list[tuple[int, int, int]] = []
        self.answers: list[str] = []
        self.short = Short({"Work": self.work, "Close": [close("output/colour.md")]})

    def work(self, view: RequestView) -> list[Call]:
        self.answers += [done_call.result for done_call in view.calls[-1:]]
        if view.replies == 0:
            return [("browser__browser_navigate", {"url": self.address})]
        if view.replies == 1:
            return [("browser__browser_take_screenshot", {"type": "png", "scale": "css"})]
        if view.replies == 2:
            matched = re.search(r"received/\w+\.png", self.answers[-1])
            path = matched[0] if matched else "none.png"
            return [("view_image", {"path": path}), ("list_files", {"path": "received"})]
        colour = f"{self.seen[-1]}" if self.seen else "none"
        return [("write_file", {"path": "output/colour.md", "content": colour}), DONE]

    def __call__(self, request: Request) -> Any:
        return self.short(request)

    def look(self, messages: list[dict[str, Any]]) -> None:
        """Note the colour in the corner of each image of a request."""
        for url in re.findall(r"data:image/png;base64,([\w+/=]+)", str(messages)):
            image = Image.open(BytesIO(base64.b64decode(url))).convert("RGB")
            pixel = image.getpixel((image.width - 1, image.height - 1))
            assert isinstance(pixel, tuple)
            self.seen.append((int(pixel[0]), int(pixel[1]), int(pixel[2])))


# The tester below looks over the API for chats.
@pytest.mark.parametrize("api", soak(["responses"], ["chat", "responses"]))
async def test_a_job_looks_at_a_page_of_a_real_browser(
    temporal: Client, root: Root, tmp_path: Any, api: str
) -> None:
    with served(Page) as address:
        looking = Looking(address)
        responses = Responses(looking)

        def chat(request: Request) -> Any:
            looking.look(request["messages"])
            return looking(request)

        def sees(request: Request) -> Any:
            looking.look(responses.requests[-1]["input"])
            return looking(request)

        responses.model = sees
        model = ProviderTransport(Provider(responses)) if api == "responses" else chat
        settings = {
            "mcp": {"browser": browser(str(tmp_path))},
            "limits.tools_offered": 100,
            "model.vision": True,
            "model.api": api,
            "model.temperature": None,
            "model.base_url": "http://model/v1",
        }
        async with serving(temporal, root, model) as jobs:
            handle = await jobs.start(job(set=settings))
            result = await jobs.result(handle)
            assert result["status"] == "completed", looking.answers
            colour = (jobs.folder(handle) / "output" / "colour.md").read_text()
            history = await handle.fetch_history()
            snapshot = jobs.snapshot(handle, result["checkpoint"])
    assert colour == "(0, 128, 0)", looking.answers
    # Neither the history nor any message in a checkpoint contains the image itself.
    assert "iVBOR" not in history.to_json()
    assert not any(b"iVBOR" in message for message in snapshot.conversation.stored_messages())
    assert not responses.refusals


FEATURE = {"id": "page", "description": "A green page.", "checks": ["browser"]}
BY_LOOKING = ("browser__browser_navigate", "browser__browser_take_screenshot", "view_image")


class Looker(Team):
    """A team whose tester opens the page, takes a picture, looks at it, and judges the colour."""

    def __call__(self, request: Request) -> Any:
        view = parse_request_view(request)
        shots = re.findall(
            r"received/\w+\.png", " ".join(tool_names.result for tool_names in view.calls)
        )
        tool_names = [call.tool for call in view.calls]
        if "Test the feature page" not in view.workspace or tool_names[-1:] == ["write_file"]:
            return super().__call__(request)
        steps = [name for name in BY_LOOKING if name not in tool_names]
        planning = not view.current_todo or view.current_todo.text.startswith(("Plan", "Mark"))
        if planning or not steps:
            return super().__call__(request)
        arguments: dict[str, Any] = {"url": self.address}
        if steps[0] == BY_LOOKING[1]:
            arguments = {"type": "png", "scale": "css"}
        elif steps[0] == BY_LOOKING[2]:
            arguments = {"path": shots[-1]}
        return Reply(calls=[(steps[0], arguments)])

    address = ""


async def test_a_tester_passes_a_page_by_looking_at_it(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    tester = "looked.page-tester-1"

    class Product(Handler):
        """Serves the page as the tester was handed it."""

        def do_GET(self) -> None:
            self.give((root.workspace(tester) / "repo" / "page.html").read_bytes())

    colours: list[tuple[int, ...]] = []

    def verdict(opening: str) -> list[Call]:
        green = bool(colours) and colours[-1] == (0, 128, 0)
        checks = [{"check": "browser", "passed": green}]
        findings = [] if green else [f"It is {colours}."]
        return [
            answer(
                "output/verdict.json",
                {"health": "Seen.", "checks": checks, "passed": green, "findings": findings},
            )
        ]

    team = Looker(
        {
            "Set the project up": lambda told: [
                write("repo/readme.md", "A page.\n"),
                answer("output/features.json", {"features": [FEATURE]}),
            ],
            "Make the feature page": lambda told: [write("repo/page.html", PAGE.decode())],
            "Test the feature page": verdict,
        }
    )

    def model(request: Request) -> Any:
        for url in re.findall(r"data:image/png;base64,([\w+/=]+)", str(request["messages"])):
            image = Image.open(BytesIO(base64.b64decode(url))).convert("RGB")
            pixel = image.getpixel((image.width - 1, image.height - 1))
            assert isinstance(pixel, tuple)
            colours.append(tuple(int(part) for part in pixel[:3]))
        return team(request)

    settings = {
        "tools": ["files", "todos", "job"],
        "mcp": {"browser": browser(str(tmp_path))},
        "limits.tools_offered": 100,
        "model.vision": True,
    }
    with served(Product) as address:
        team.address = address
        async with serving(temporal, root, model) as jobs:
            start = project("features", proof={"browser": ["view_image"]}, set=settings)
            handle = await jobs.start(start, kind="Project", job_id="looked")
            result = await jobs.result(handle)
            status = await temporal.get_workflow_handle(tester).query("status")
    assert result["status"] == "completed", result
    [unit] = result["units"]
    assert unit["tested"]
    assert "view_image" in unit["evidence"][0]["ran"]
    assert re.match(r"received/\w+\.png \(PNG, ", unit["evidence"][0]["end"])
    assert status["result"]["status"] == "completed"

"""The examples in the documentation do what it says."""

import asyncio
import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters, stdio_client
from openai import AsyncOpenAI
from temporalio.client import Client
from temporalio.service import RPCError

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from activities.toolkit.agent_tools import agent_tools_by_name, check_agent_server_names
from activities.toolkit.registry import REGISTRY, select_registered_tools
from config.agent_files import load_agent
from config.layers import SHIPPED
from config.templates import render_template
from engine.development import development_server, find_temporal_binary
from engine.service import build_worker
from rehearsal import RehearsalTransport, rehearse
from tests.activities.standing import Standing
from tests.docs.reading import blocks, commands, page
from tests.workflows.serving import Jobs
from tests.workflows.tea import in_phase


def test_the_agent_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGHAUL_MODEL", raising=False)
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    text = page("writing-an-agent.md")
    for code in blocks(text, "yaml") + blocks(text, "markdown"):
        first, _, content = code.partition("\n")
        match = re.search(r"config/\S+", first)
        assert match, first
        path = tmp_path / match[0]
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    agent = load_agent("critic", folder=config)
    assert agent.limits.rewinds == 2
    assert agent.limits.max_todos == load_agent("generalist").limits.max_todos
    assert {"cite_document", "todo_write"} <= {
        tool.name for tool in select_registered_tools(agent.tools)
    }
    rendered = render_template(agent.instructions_template, instructions="Only page 3.")
    assert "For this job" in rendered
    assert "For this job" not in render_template(agent.instructions_template, instructions="")


def test_the_agent_with_servers_is_the_one_it_extends(tmp_path: Path) -> None:
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    first, _, content = blocks(page("mcp.md"), "yaml")[0].partition("\n")
    path = tmp_path / first.removeprefix("# ")
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    agent, coder = load_agent(path.parent.name, folder=config), load_agent("coder", folder=config)
    assert list(agent.mcp) == ["tracker", "docs", "fs"]
    assert agent.tools == coder.tools
    assert agent.todos == coder.todos
    assert agent.instructions_template == coder.instructions_template


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    """Return a configuration with the files of the page on guards."""
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    for code in blocks(page("writing-a-guard.md"), "yaml"):
        first, _, content = code.partition("\n")
        path = tmp_path / first.removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return config


def test_the_agent_of_the_tutorial_keeps_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LONGHAUL_MODEL", raising=False)
    text = page("tutorial.md")
    for code in blocks(text, "yaml") + blocks(text, "markdown"):
        first, _, content = code.partition("\n")
        if match := re.search(r"~/longhaul/(\S+)", first):
            path = tmp_path / match[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))
    agent = load_agent("mender")
    assert agent.tests
    assert agent.tests.required
    assert "Mend it." in render_template(agent.instructions_template, instructions="Mend it.")
    job = Standing.begin(tmp_path / "job", kind="tactical")
    job.pin(agent)
    assert job.call("write_file", path="repo/tests/test_tea.py", content="tea").startswith("Wrote")
    assert "Tests are not removed" in job.call("delete_file", path="repo/tests/test_tea.py")
    assert job.text("repo/tests/test_tea.py") == "tea"


def test_the_guards_act(guarded: Path, tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.pin(load_agent("careful", folder=guarded))
    assert "Nothing unfinished" in job.call("write_file", path="output/a.md", content="TBD")
    assert job.call("write_file", path="notes/a.md", content="TBD").startswith("Wrote")
    assert "Wrote 3" in job.call("write_file", path="output/a.txt", content="tea")
    assert job.text("output/a.md") == "tea"


def test_the_hook_denies(guarded: Path, tmp_path: Path) -> None:
    [code] = blocks(page("writing-a-guard.md"), "python")
    file = tmp_path / "no-forbidden"
    file.write_text(code, encoding="utf-8")
    file.chmod(0o755)
    agent = load_agent("watched", folder=guarded)
    [hook] = agent.hooks["PreToolUse"]
    hook.command = str(file)
    job = Standing.begin(tmp_path)
    job.pin(agent)
    denied = job.call("write_file", path="forbidden/a.md", content="x")
    assert denied == "Error: Refused by no-forbidden: Nothing goes there; write to notes/."
    assert job.call("write_file", path="notes/a.md", content="x").startswith("Wrote")


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[ModuleType]:
    """Load the module of the page on tools, with its tool in the registry meanwhile."""
    code, _ = blocks(page("writing-a-tool.md"), "python")
    file = tmp_path / "counting.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("counting", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["counting"] = module
    spec.loader.exec_module(module)
    yield module
    del REGISTRY["count_words"], sys.modules["counting"]


def test_the_tool_runs(counting: ModuleType, tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.write("notes/a.md", "tea is made of leaves")
    job.write("notes/b.bin", b"\xff\xfe")
    assert job.call("count_words", path="notes/a.md") == "notes/a.md has 5 words."
    assert job.call("count_words", path="notes/a.md", at_least=3).endswith("3 words.")
    assert "not a text file" in job.call("count_words", path="notes/b.bin")
    assert "at_least" in job.call("count_words", path="notes/a.md", at_least=0)
    assert [entry.name for entry in select_registered_tools(["counting"])] == ["count_words"]


def test_both_agents_of_the_page_go_together(counting: ModuleType, tmp_path: Path) -> None:
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    for code in blocks(page("writing-a-tool.md"), "yaml"):
        first, _, content = code.partition("\n")
        path = config / first.removeprefix("# ~/longhaul/")
        path.parent.mkdir()
        path.write_text(content, encoding="utf-8")
    counter, liner = (load_agent(name, folder=config) for name in ("counter", "liner"))
    assert "count_words" in agent_tools_by_name(counter)
    check_agent_server_names(liner)


async def test_the_tool_runs_as_an_mcp_server(tmp_path: Path) -> None:
    _, code = blocks(page("writing-a-tool.md"), "python")
    file = tmp_path / "lines.py"
    file.write_text(code, encoding="utf-8")
    server = StdioServerParameters(command=sys.executable, args=[str(file)])
    async with McpClient(stdio_client(server)) as client:
        [offered] = (await client.list_tools()).tools
        answer = await client.call_tool("count_lines", {"text": "tea\nis made of leaves"})
    assert offered.annotations
    assert offered.annotations.read_only_hint
    assert [part.text for part in answer.content if part.type == "text"] == ["2 lines"]


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    """Run a server with a worker on the default task queue, whose model is slow."""
    root = Root.open(tmp_path / "root", create=True)
    slow = AsyncOpenAI(
        base_url="http://model/v1",
        api_key="none",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=RehearsalTransport(rehearse, delay=0.3)),
    )
    async with development_server(ui=False) as running:
        activities = all_activities(root, connect=lambda _: slow)
        async with build_worker(running.client, task_queue="longhaul", activities=activities):
            yield Jobs(running.client, root, "longhaul")


async def test_temporal_commands_start_steer_and_reset_a_job(jobs: Jobs) -> None:
    """Run every command of the page in its order, with the fork beside the job."""
    lines = [line for line in commands(page("signals.md")) if line.startswith("temporal workflow ")]
    tea = jobs.client.get_workflow_handle("tea")
    effects: dict[str, dict[str, Any]] = {
        "start": {"phase": in_phase(2)},
        "fork": {},
        "query": {},
        "list": {},
        "pause": {"waiting_for": "paused"},
        "resume": {"waiting_for": None},
        "rewind": {"rewinds": 1},
        "limit": {"limits": lambda limits: limits["phase"]["model_calls"]["limit"] == 800},
        # Nothing was refused in this job, so nothing can be bypassed.
        "bypass": {"notices": lambda told: any("has refused nothing" in line for line in told)},
        "update": {},
        # No question is open here, and the job says so.
        "answer": {"notices": lambda told: "no question is open" in str(told)},
        "deny": {"notices": lambda told: "no request for approval" in str(told)},
        "cancel": {"status": "cancelled"},
        "reset": {"rewinds": 0, "status": "running"},
    }
    actions = []
    for words in map(shlex.split, lines):
        # The text names commands without their arguments.
        if len(words) == 3:
            continue
        out = await _run(jobs.client, words)
        named = words[words.index("--name") + 1] if "--name" in words else words[2]
        named = "update" if words[2] == "update" else named
        actions.append("fork" if '"fork"' in words[-1] else named)
        assert actions[-1] != "query" or "Write a guide on tea" in out
        await jobs.until(tea, **effects[actions[-1]])
    assert actions == list(effects)
    fork = jobs.client.get_workflow_handle("tea-short")
    await jobs.until(fork, phase=in_phase(3))
    for job in (fork, tea):
        # If all of this takes long, the fork may have ended meanwhile.
        with suppress(RPCError):
            await job.terminate()


async def _run(client: Client, words: list[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        str(find_temporal_binary()),
        *words[1:],
        env={**os.environ, "TEMPORAL_ADDRESS": client.service_client.config.target_host},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out = (await process.communicate())[0].decode()
    assert process.returncode == 0, f"{shlex.join(words)}\n{out}"
    return out

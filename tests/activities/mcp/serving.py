"""Servers for tests: ours, the public ones, and a job's checkpoint that has their tools."""

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.common import RawValue

from activities.mcp.declarations import declare_tools
from activities.steps.tool_call import remote_tool_call_activity
from activities.toolkit.agent_tools import agent_tools
from config.agent_files import load_agent
from config.schema.agent import AgentConfig
from engine.converter import DATA_CONVERTER
from engine.free_ports import free_port
from protocol.requests import ToolReply
from tests.activities.standing import Standing, environment

ODD = Path(__file__).with_name("odd.py")
PATIENT = Path(__file__).with_name("patient.py")
FETCHED = Path(__file__).parents[2] / ".fetched" / "mcp" / "node_modules" / ".bin"


def odd(ledger: Path, *form: str, **settings: Any) -> dict[str, Any]:
    """The configuration of our own server."""
    return {"command": [sys.executable, str(ODD), str(ledger), *form], **settings}


@contextmanager
def patient_over_http(ledger: Path, *form: str) -> Iterator[dict[str, Any]]:
    """Return the configuration of the server that asks and runs tasks, in its own process."""
    port = free_port()
    command = [sys.executable, str(PATIENT), str(ledger), *form, "http", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(port))
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    """Return whether a port of this machine accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def public(name: str, *arguments: str, **settings: Any) -> dict[str, Any]:
    """Return the configuration of a public server, if npm has fetched it."""
    program = FETCHED / f"mcp-server-{name}"
    if not program.exists():
        message = f"{program.name} is not there; `make develop` fetches it where there is npm"
        if os.environ.get("CI") and shutil.which("npm"):
            pytest.fail(message)
        pytest.skip(message)
    return {"command": [str(program), *arguments], **settings}


def agent(**servers: dict[str, Any]) -> AgentConfig:
    """Return the generalist with these servers, asked for their tools, all of which are offered."""
    config = load_agent("generalist", {"mcp": servers, "limits.tools_offered": 100})
    declare_tools(config)
    return config


def standing(path: Path, config: AgentConfig) -> Standing:
    """Return a job of that agent in a tactical phase."""
    job = Standing.begin(path, kind="tactical")
    job.pin(config)
    return job


def call(
    job: Standing,
    name: str,
    /,
    raw: str = "{}",
    *,
    attempt: int = 1,
    activity_id: str = "",
    again: bool = False,
) -> ToolReply:
    """Call a tool of a server (with `again`, repeat the present call); the job moves on."""
    if attempt == 1 and not again:
        job.reply((name, raw))
    request = job.request()
    env = environment(local=False, attempt=attempt, activity_id=activity_id or str(job.step))
    run = remote_tool_call_activity(job.root)
    reply = run_dynamic(env, run, name, request)
    job.commit = reply.commit
    return reply


def run_dynamic(env: Any, run: Any, name: str, request: Any) -> ToolReply:
    """Run the activity for unknown names, as a worker would for this one."""
    env.info = dataclasses.replace(env.info, activity_type=name)
    env.payload_converter = DATA_CONVERTER.payload_converter
    [payload] = env.payload_converter.to_payloads([request])
    reply: ToolReply = env.run(run, [RawValue(payload)])
    return reply


def answer(job: Standing) -> str:
    """Return the last result, as the model sees it."""
    content: str = job.open().conversation.messages()[-1]["content"]
    return content


def names(config: AgentConfig) -> list[str]:
    return [entry.name for entry in agent_tools(config) if "__" in entry.name]


def processes(word: str) -> dict[int, int]:
    """Return the processes whose command line has the word, each with its process group."""
    # -ww: lines of any length.
    shown = subprocess.check_output(["ps", "-wweo", "pid,pgid,args"], text=True)
    rows = [line.split(None, 2) for line in shown.splitlines() if word in line]
    return {int(pid): int(group) for pid, group, _ in rows}


def kill(word: str) -> None:
    """Kill the server with `kill -9`, but not its keeper."""
    [pid] = [pid for pid, group in processes(word).items() if pid != group]
    os.kill(pid, signal.SIGKILL)


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)

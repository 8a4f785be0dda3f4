"""The command `mcp`: serves jobs to coding agents over the Model Context Protocol.

Each tool runs one command of this program, so an agent meets the checks and messages that people
meet, and has their rights and no others.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from pydantic import Field

from cli.output import MISTAKE, OK

if TYPE_CHECKING:
    from mcp.server import MCPServer

MAX_CHARACTERS = 60_000
"""Most characters of an answer; clients put it into a model's context."""
Job = Annotated[str, Field(description="Id of the job, as list_jobs shows it.", min_length=1)]
Text = Annotated[str, Field(min_length=1)]
INSTRUCTIONS = """\
Longhaul runs work that takes hours as durable jobs. start_job hands work over and returns at \
once. show_job says how it stands, what it waits for, and at the end which statements of the \
instructions are met. Approve only what a person has asked you to approve."""


def mcp() -> int:
    """Serve jobs to a coding agent over MCP, on standard input and output.

    The agent can start, list, show, tell, answer, approve and deny, and read files and differences.
    """
    build_server().run("stdio")
    return OK


def build_server() -> MCPServer[Any]:
    """Return the server with its tools."""
    from mcp.server import MCPServer  # noqa: PLC0415 - takes a second
    from mcp.types import ToolAnnotations  # noqa: PLC0415

    server: MCPServer[Any] = MCPServer("longhaul", instructions=INSTRUCTIONS)
    looks, acts = ToolAnnotations(read_only_hint=True), ToolAnnotations(destructive_hint=False)
    tools: list[tuple[Callable[..., Awaitable[str]], ToolAnnotations]] = [
        *((tool, looks) for tool in (list_jobs, show_job, list_files, read_file, diff_job)),
        *((tool, acts) for tool in (start_job, tell_job, answer_job)),
        *((tool, ToolAnnotations(destructive_hint=True)) for tool in (approve_job, deny_job)),
    ]
    for tool, hints in tools:
        server.tool(annotations=hints, structured_output=False)(tool)
    return server


async def list_jobs(only_open: bool = True) -> str:
    """List jobs, projects and trials, newest first, as JSON."""
    return await _run_starter("list", ["--json", *["--open"] * only_open])


async def show_job(job: Job) -> str:
    """Show a job's state as JSON: phase, todos, scope, usage, what it waits for, its result."""
    return await _run_starter("show", ["--json"], job)


async def list_files(job: Job) -> str:
    """List a job's files, results first."""
    return await _run_starter("files", [], job)


async def read_file(job: Job, path: Text) -> str:
    """Read one of a job's files."""
    return await _run_starter("files", [], job, path)


async def diff_job(job: Job) -> str:
    """Show what a job on a repository, or a project, has changed, like `git diff`."""
    return await _run_starter("diff", [], job)


async def start_job(
    agent: Annotated[Text, Field(description="Such as generalist, creator or coder.")],
    instructions: Annotated[
        Text, Field(description="What must be true at the end, one thing a sentence.")
    ],
    documents: Annotated[
        list[Text] | None, Field(description="Files or addresses to work on.")
    ] = None,
    items: Annotated[
        list[Text] | None, Field(description="Things that the job must cover, each on its own.")
    ] = None,
    repository: Annotated[str, Field(description="Address of a git repository to work on.")] = "",
    approve_plan: Annotated[
        bool, Field(description="Whether a person approves the plan before the work begins.")
    ] = False,
) -> str:
    """Start a job and return its id and its page."""
    # A text that begins with @ would name a file.
    options = ["--json", "--instructions", f" {instructions}"]
    for option, values in (("--document", documents), ("--item", items)):
        options += [part for value in values or [] for part in (option, value)]
    options += ["--repository", repository] if repository else []
    return await _run_starter("start", [*options, *["--approve-plan"] * approve_plan], agent)


async def tell_job(job: Job, text: Text) -> str:
    """Say something to the agent of a job, which follows it until the job ends."""
    return await _run_starter("tell", ["--json"], job, text)


async def answer_job(job: Job, text: Text) -> str:
    """Answer the question that a job is waiting with."""
    return await _run_starter("answer", ["--json"], job, text)


async def approve_job(job: Job, reason: str = "") -> str:
    """Approve what a job waits for. Only on a person's word."""
    return await _run_starter("approve", ["--json", "--reason", reason], job)


async def deny_job(job: Job, reason: Text) -> str:
    """Refuse what a job waits for; the agent goes on without it."""
    return await _run_starter("deny", ["--json", "--reason", reason], job)


async def _run_starter(command: str, options: list[str], *values: str) -> str:
    """Return what a command prints. Raises ToolError with its message if it refuses."""
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415

    program = await anyio.Path(sys.argv[0]).resolve()
    done = await anyio.run_process(
        [sys.executable, str(program), command, *options, "--", *values],
        check=False,
        stdin=subprocess.DEVNULL,
    )
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == MISTAKE and done.stdout:
        raise ToolError(json.loads(done.stdout)["error"])
    if done.returncode != OK and not done.stdout:
        raise ToolError(said or f"{command} ended with {done.returncode}")
    text = done.stdout.decode(errors="replace").strip()
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}\n[cut: {len(text):,} characters]"
    return text or said

"""A coding agent hands a job over through MCP and looks after it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import TextContent

from activities.checkpoints import Root
from engine.development import DevelopmentServer
from rehearsal import rehearse
from tests.docs.reading import ROOT
from tests.workflows.serving import serving


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    [content] = answer.content
    assert isinstance(content, TextContent)
    return content.text if not answer.is_error else f"refused: {content.text}"


async def test_a_job_is_handed_over_told_and_read(
    running: DevelopmentServer, tmp_path: Path
) -> None:
    root = Root.open(tmp_path / "root", create=True)
    async with serving(running.client, root, rehearse) as jobs:
        variables = {
            "TEMPORAL_ADDRESS": running.client.service_client.config.target_host,
            "LONGHAUL_WORKSPACES": str(root.path),
            "LONGHAUL_TASK_QUEUE": jobs.queue,
        }
        server = StdioServerParameters(
            command=sys.executable,
            args=[str(ROOT / "starter.py"), "mcp"],
            env={**os.environ, **variables},
        )
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            assert {"start_job", "show_job", "tell_job", "approve_job"} <= {t.name for t in tools}
            # A text that begins with @ is no name of a file here.
            started = await text_of(
                client, "start_job", agent="generalist", instructions="@/etc/hostname"
            )
            job = json.loads(started)["job_id"]
            handle = running.client.get_workflow_handle(job)
            await jobs.result(handle)
            shown = json.loads(await text_of(client, "show_job", job=job))
            assert shown["status"] == "completed"
            read = await text_of(client, "read_file", job=job, path="instructions.md")
            assert "@/etc/hostname" in read
            refused = await text_of(client, "show_job", job="--help")
            assert "refused: " in refused
            assert "there is no job '--help'" in refused
            assert job in await text_of(client, "list_jobs", only_open=False)

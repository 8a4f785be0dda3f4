"""Longhaul's agent for the scenarios, with a tool of one's own, and version B of a job."""

import os
from pathlib import Path
from typing import Any

from temporalio import workflow

from activities.toolkit.own_tools import load_own_tools
from benchmarks.compare.adapter_task import PROMPT_OF_B, AdapterTask
from benchmarks.compare.temporal_adapters import change_adapter_loop
from config.layers import configuration_layers
from protocol.job_record import JobRecord
from workflows.job import Job

TOOLS = '''
import time
from activities.toolkit import ToolContext, tool
from benchmarks.compare.scenario_tools import log_scenario_event


@tool("working", effect="outside", local=False{limit})
def work(context: ToolContext, number: int, seconds: float, version: str) -> str:
    """Work for some seconds."""
    log_scenario_event("began", number, version)
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(1.0, left))
    log_scenario_event("ended", number, version)
    return f"Call {{number}} is done."


@tool("other", effect="outside", local=False)
def tool_of_b(context: ToolContext, text: str) -> str:
    """Do what only version B can do."""
    return text
'''
AGENT = """
extends: generalist
tools: [files, todos, job, {groups}]
review: null
todos:
  work: [Make the calls., Call job_complete with the file.]
"""


@workflow.defn(name="Job")
class ScenarioJob(Job):
    """A job whose version B has a step more before each turn, as in `tests.workflows.versions`."""

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        return await super().run(*start)

    async def _advance(self, job: JobRecord) -> None:
        change_adapter_loop()
        await super()._advance(job)


def write_scenario_agent(config: Path, task: AdapterTask) -> dict[str, str]:
    """Write the agent `caller` and its tools to this folder, and return the start of its job."""
    changed = task.changed == "prompt"
    for path, text in {
        "tools/working.py": TOOLS.format(limit="" if task.default_limits else ", seconds=1800"),
        "agents/caller/agent.yaml": AGENT.format(groups="working, other" if changed else "working"),
        "agents/caller/instructions.md": PROMPT_OF_B if changed else "Make the calls.",
    }.items():
        (config / path).parent.mkdir(parents=True, exist_ok=True)
        (config / path).write_text(text, encoding="utf-8")
    os.environ["LONGHAUL_CONFIG"] = str(config)
    load_own_tools(configuration_layers())
    return {"agent": "caller", "instructions": task.prompt}

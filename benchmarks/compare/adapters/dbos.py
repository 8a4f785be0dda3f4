"""Pydantic AI with its durability capability for DBOS, on SQLite."""

import asyncio
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.toolsets import FunctionToolset

from benchmarks.compare.adapter_task import (
    TOOL,
    AdapterGauge,
    AdapterTask,
    Outcome,
    current_adapter_task,
    failed_adapter_outcome,
    task_tool,
)
from benchmarks.compare.pydantic_writer import pydantic_writer_limits, writer_agent
from benchmarks.compare.scenario_tools import adapter_tools

RUN = "run"
_database = Path(current_adapter_task().folder) / "dbos.sqlite"
_gauge = AdapterGauge(_database, current_adapter_task().steps // 10)
_config: DBOSConfig = {
    "name": "compare",
    "system_database_url": f"sqlite:///{_database}",
    "log_level": "ERROR",
}
DBOS(config=_config)


async def write_file(path: str, content: str) -> str:
    return task_tool(current_adapter_task(), _gauge)(path, content)


write_file.__doc__ = TOOL
steps = [DBOS.step()(each) for each in adapter_tools(current_adapter_task(), write_file)]
writer = writer_agent(
    current_adapter_task(), FunctionToolset(tools=steps, id="files"), DBOSDurability()
)


async def work_durably(prompt: str) -> str:
    return str(
        (
            await writer.run(prompt, usage_limits=pydantic_writer_limits(current_adapter_task()))
        ).output
    )


async def work_durably_in_b(prompt: str) -> str:
    """Version B of the workflow, with a step more."""
    await DBOS.sleep_async(0.01)
    return await work_durably(prompt)


durable = DBOS.workflow(name="work_durably")(
    work_durably_in_b if current_adapter_task().changed == "loop" else work_durably
)


async def _work_in_run(prompt: str) -> None:
    """Run the workflow, or wait for the one that an earlier process began and `launch` recovers."""
    if await DBOS.get_workflow_status_async(RUN):
        await (await DBOS.retrieve_workflow_async(RUN)).get_result()
        return
    with SetWorkflowID(RUN):
        await durable(prompt)


async def run_dbos(task: AdapterTask) -> Outcome:
    DBOS.launch()
    outcome = Outcome("finished")
    try:
        async with asyncio.timeout(task.cap):
            await _work_in_run(task.prompt)
    except TimeoutError:
        outcome = Outcome("time")
    except Exception as error:
        outcome = failed_adapter_outcome(error)
    _gauge.look()
    return Outcome(outcome.ended, outcome.error, _gauge.recorded)

"""Pydantic AI with its durability capability for DBOS, on SQLite."""

import asyncio
from pathlib import Path

from dbos import DBOS, DBOSConfig
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
step = DBOS.step()(write_file)
writer = writer_agent(
    current_adapter_task(), FunctionToolset(tools=[step], id="files"), DBOSDurability()
)


async def work_durably(prompt: str) -> str:
    return str(
        (
            await writer.run(prompt, usage_limits=pydantic_writer_limits(current_adapter_task()))
        ).output
    )


durable = DBOS.workflow()(work_durably)


async def run_dbos(task: AdapterTask) -> Outcome:
    DBOS.launch()
    outcome = Outcome("finished")
    try:
        async with asyncio.timeout(task.cap):
            await durable(task.prompt)
    except TimeoutError:
        outcome = Outcome("time")
    except Exception as error:
        outcome = failed_adapter_outcome(error)
    _gauge.look()
    return Outcome(outcome.ended, outcome.error, _gauge.recorded)

"""LangChain's `create_agent`, which is a LangGraph, with DeltaChannel and SQLite."""

import asyncio
from pathlib import Path
from typing import Any

from deepagents import DeepAgentState
from langchain.agents import create_agent
from langchain.agents.middleware import before_model
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.compare.adapter_task import (
    KEY,
    AdapterGauge,
    AdapterTask,
    Outcome,
    failed_adapter_outcome,
    task_tool,
)
from benchmarks.compare.scenario_tools import adapter_tools


async def step_of_b(state: Any, runtime: Any) -> None:
    """The node that version B adds to the graph."""


async def run_langgraph(task: AdapterTask) -> Outcome:
    database = Path(task.folder) / "checkpoints.sqlite"
    gauge = AdapterGauge(database, task.steps // 10)
    model = ChatOpenAI(
        model=task.model, base_url=task.base_url, api_key=KEY, temperature=0, max_retries=0
    )
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        agent = create_agent(
            model,
            tools=adapter_tools(task, task_tool(task, gauge)),
            system_prompt=task.system,
            middleware=[before_model(step_of_b)] if task.changed == "loop" else [],
            # LangChain's own state whose messages are in a DeltaChannel.
            state_schema=DeepAgentState,
            checkpointer=saver,
        )
        config: Any = {"configurable": {"thread_id": "run"}}
        first = {"messages": [{"role": "user", "content": task.prompt}]}
        begun = (await agent.aget_state(config)).next
        durability: Any = "sync" if task.scenario else None
        outcome = Outcome("finished")
        try:
            async with asyncio.timeout(task.cap):
                await agent.ainvoke(None if begun else first, config, durability=durability)
        except TimeoutError:
            outcome = Outcome("time")
        except Exception as error:
            outcome = failed_adapter_outcome(error)
        gauge.look()
    # Checkpoints are written behind the run, so intermediate sizes mean nothing.
    return Outcome(outcome.ended, outcome.error, [(0, 0), gauge.recorded[-1]])

"""LangChain's `create_agent`, which is a LangGraph, with DeltaChannel and SQLite."""

import asyncio
from pathlib import Path

from deepagents import DeepAgentState
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.compare.adapter_task import (
    KEY,
    SYSTEM,
    AdapterGauge,
    AdapterTask,
    Outcome,
    failed_adapter_outcome,
    task_tool,
)


async def run_langgraph(task: AdapterTask) -> Outcome:
    database = Path(task.folder) / "checkpoints.sqlite"
    gauge = AdapterGauge(database, task.steps // 10)
    model = ChatOpenAI(
        model=task.model, base_url=task.base_url, api_key=KEY, temperature=0, max_retries=0
    )
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        agent = create_agent(
            model,
            tools=[task_tool(task, gauge)],
            system_prompt=SYSTEM,
            # LangChain's own state whose messages are in a DeltaChannel.
            state_schema=DeepAgentState,
            checkpointer=saver,
        )
        outcome = Outcome("finished")
        try:
            async with asyncio.timeout(task.cap):
                await agent.ainvoke(
                    {"messages": [{"role": "user", "content": task.prompt}]},
                    {"configurable": {"thread_id": "run"}},
                )
        except TimeoutError:
            outcome = Outcome("time")
        except Exception as error:
            outcome = failed_adapter_outcome(error)
        gauge.look()
    # Checkpoints are written behind the run, so intermediate sizes mean nothing.
    return Outcome(outcome.ended, outcome.error, [(0, 0), gauge.recorded[-1]])

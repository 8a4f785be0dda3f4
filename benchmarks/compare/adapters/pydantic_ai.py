"""Pydantic AI with its durability capability for Temporal."""

from temporalio import workflow
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from pydantic_ai import ModelMessage, RunContext, Tool
    from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, TemporalDurability
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.usage import RunUsage

    from benchmarks.compare.adapter_task import (
        AdapterTask,
        Outcome,
        current_adapter_task,
        task_tool,
    )
    from benchmarks.compare.pydantic_writer import pydantic_writer_limits, writer_agent
    from benchmarks.compare.scenario_tools import adapter_tools, tool_time_limits
    from benchmarks.compare.temporal_adapters import (
        QUEUE,
        adapter_workflow_outcome,
        change_adapter_loop,
        serve_temporal_for_adapter,
        start_adapter_workflow,
    )


def _continue_pydantic_run(context: RunContext[None]) -> None:
    workflow.continue_as_new(args=[None, context.messages, context.usage])


def _pydantic_tools(task: AdapterTask) -> list[Tool[None]]:
    limited = task.scenario and not task.default_limits
    metadata = {"temporal": tool_time_limits(task)} if limited else None
    return [Tool(each, metadata=metadata) for each in adapter_tools(task, task_tool(task))]


writer = writer_agent(
    current_adapter_task(),
    FunctionToolset[None](tools=_pydantic_tools(current_adapter_task()), id="files"),
    TemporalDurability(continue_as_new=_continue_pydantic_run),
)


@workflow.defn(name="PydanticAgent")
class PydanticAgent:
    __pydantic_ai_agents__ = (writer,)

    @workflow.run
    async def run(
        self, prompt: str | None, messages: list[ModelMessage], usage: RunUsage | None
    ) -> str:
        change_adapter_loop()
        result = await writer.run(
            prompt,
            message_history=messages,
            usage=usage,
            usage_limits=pydantic_writer_limits(current_adapter_task()),
        )
        return str(result.output)


async def run_pydantic_ai(task: AdapterTask) -> Outcome:
    async with (
        serve_temporal_for_adapter([PydanticAIPlugin()]) as server,
        Worker(server.client, task_queue=QUEUE, workflows=[PydanticAgent]),
    ):
        handle = await start_adapter_workflow(server, PydanticAgent.run, task.prompt, [], None)
        return await adapter_workflow_outcome(server, handle, task, "__model_request")

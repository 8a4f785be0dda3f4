"""Pydantic AI with its durability capability for Temporal."""

from temporalio import workflow
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from pydantic_ai import ModelMessage, RunContext
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
    from benchmarks.compare.temporal_adapters import (
        QUEUE,
        WORKFLOW,
        adapter_workflow_outcome,
        serve_temporal_for_adapter,
    )


def _continue_pydantic_run(context: RunContext[None]) -> None:
    workflow.continue_as_new(args=[None, context.messages, context.usage])


toolset = FunctionToolset[None](tools=[task_tool(current_adapter_task())], id="files")
writer = writer_agent(
    current_adapter_task(), toolset, TemporalDurability(continue_as_new=_continue_pydantic_run)
)


@workflow.defn(name="PydanticAgent")
class PydanticAgent:
    __pydantic_ai_agents__ = (writer,)

    @workflow.run
    async def run(
        self, prompt: str | None, messages: list[ModelMessage], usage: RunUsage | None
    ) -> str:
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
        handle = await server.client.start_workflow(
            PydanticAgent.run,
            args=[task.prompt, [], None],
            id=WORKFLOW,
            task_queue=QUEUE,
        )
        return await adapter_workflow_outcome(server, handle, task, "__model_request")

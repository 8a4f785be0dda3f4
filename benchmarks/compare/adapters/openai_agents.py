"""The OpenAI Agents SDK with Temporal's plugin for it."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from agents import Agent, ModelSettings, OpenAIProvider, Runner
    from openai import AsyncOpenAI
    from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
    from temporalio.openai_agents.workflow import activity_as_tool

    from benchmarks.compare.adapter_task import (
        KEY,
        SYSTEM,
        TOOL,
        AdapterTask,
        Outcome,
        current_adapter_task,
        task_tool,
    )
    from benchmarks.compare.temporal_adapters import (
        QUEUE,
        WORKFLOW,
        adapter_workflow_outcome,
        serve_temporal_for_adapter,
    )

PATIENCE = timedelta(seconds=60)
MANY = 1_000_000
"""Maximum of turns when the limit is lifted."""


@activity.defn(name="write_file")
async def write_file(path: str, content: str) -> str:
    return task_tool(current_adapter_task())(path, content)


write_file.__doc__ = TOOL


@workflow.defn(name="OpenAIAgent")
class OpenAIAgent:
    @workflow.run
    async def run(self, model: str, prompt: str, lifted: bool) -> str:
        agent = Agent(
            name="Writer",
            instructions=SYSTEM,
            model=model,
            model_settings=ModelSettings(temperature=0),
            tools=[activity_as_tool(write_file, start_to_close_timeout=PATIENCE)],
        )
        if lifted:
            result = await Runner.run(agent, input=prompt, max_turns=MANY)
        else:
            result = await Runner.run(agent, input=prompt)
        return str(result.final_output)


async def run_openai_agents(task: AdapterTask) -> Outcome:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, max_retries=0)
    plugin = OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=PATIENCE),
        model_provider=OpenAIProvider(openai_client=client, use_responses=False),
    )
    async with (
        serve_temporal_for_adapter([plugin]) as server,
        Worker(server.client, task_queue=QUEUE, workflows=[OpenAIAgent], activities=[write_file]),
    ):
        handle = await server.client.start_workflow(
            OpenAIAgent.run,
            args=[task.model, task.prompt, task.lifted],
            id=WORKFLOW,
            task_queue=QUEUE,
        )
        return await adapter_workflow_outcome(server, handle, task, "invoke_model_activity")

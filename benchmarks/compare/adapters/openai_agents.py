"""The OpenAI Agents SDK with Temporal's plugin for it."""

from temporalio import activity, workflow
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from agents import Agent, ModelSettings, OpenAIProvider, Runner
    from openai import AsyncOpenAI
    from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
    from temporalio.openai_agents.workflow import activity_as_tool

    from benchmarks.compare.adapter_task import (
        KEY,
        TOOL,
        AdapterTask,
        Outcome,
        current_adapter_task,
        task_tool,
    )
    from benchmarks.compare.scenario_tools import SHORT, adapter_tools, tool_time_limits
    from benchmarks.compare.temporal_adapters import (
        QUEUE,
        adapter_workflow_outcome,
        change_adapter_loop,
        serve_temporal_for_adapter,
        start_adapter_workflow,
    )

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
        change_adapter_loop()
        task = current_adapter_task()
        limits = tool_time_limits(task)
        agent = Agent(
            name="Writer",
            instructions=task.system,
            model=model,
            model_settings=ModelSettings(temperature=0),
            tools=[activity_as_tool(each, **limits) for each in adapter_tools(task, write_file)],
        )
        if lifted:
            result = await Runner.run(agent, input=prompt, max_turns=MANY)
        else:
            result = await Runner.run(agent, input=prompt)
        return str(result.final_output)


async def run_openai_agents(task: AdapterTask) -> Outcome:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, max_retries=0)
    plugin = OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=SHORT),
        model_provider=OpenAIProvider(openai_client=client, use_responses=False),
    )
    async with (
        serve_temporal_for_adapter([plugin]) as server,
        Worker(
            server.client,
            task_queue=QUEUE,
            workflows=[OpenAIAgent],
            activities=adapter_tools(task, write_file),
        ),
    ):
        handle = await start_adapter_workflow(
            server, OpenAIAgent.run, task.model, task.prompt, task.lifted
        )
        return await adapter_workflow_outcome(server, handle, task, "invoke_model_activity")

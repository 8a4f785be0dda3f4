"""LangChain's Deep Agents with Temporal's plugin for them."""

from typing import Any

from temporalio import workflow
from temporalio.worker import Worker
from temporalio.workflow import ActivityConfig

with workflow.unsafe.imports_passed_through():
    from deepagents.backends import FilesystemBackend
    from langchain_openai import ChatOpenAI
    from temporalio.deepagents import (
        DeepAgentsPlugin,
        TemporalBackend,
        create_temporal_deep_agent,
        run_deep_agent,
        tool_as_activity,
    )

    from benchmarks.compare.adapter_task import (
        KEY,
        AdapterTask,
        Outcome,
        current_adapter_task,
    )
    from benchmarks.compare.scenario_tools import LONG, SHORT, adapter_tools, tool_time_limits
    from benchmarks.compare.temporal_adapters import (
        QUEUE,
        adapter_workflow_outcome,
        change_adapter_loop,
        serve_temporal_for_adapter,
        start_adapter_workflow,
    )


def _deep_agent_tools(task: AdapterTask) -> list[Any]:
    """Return the tools beside its own; only scenarios have any."""
    limits = tool_time_limits(task)
    return [
        tool_as_activity(each, start_to_close_timeout=LONG, activity_options=limits)
        for each in adapter_tools(task)
    ]


tools = _deep_agent_tools(current_adapter_task())


@workflow.defn(name="DeepAgent")
class DeepAgent:
    @workflow.run
    async def run(self, given: dict[str, Any], state_snapshot: dict[str, Any] | None = None) -> Any:
        change_adapter_loop()
        backend = TemporalBackend(
            "files",
            factory_argument=str(current_adapter_task().files),
            backend_type=FilesystemBackend,
            activity_options=ActivityConfig(start_to_close_timeout=SHORT),
        )
        agent = create_temporal_deep_agent(
            model=current_adapter_task().model,
            tools=tools,
            system_prompt=current_adapter_task().system,
            backend=backend,
            activity_options={"start_to_close_timeout": SHORT},
        )
        result = await run_deep_agent(agent, given, state_snapshot=state_snapshot)
        return result["messages"][-1].content


async def run_deepagents(task: AdapterTask) -> Outcome:
    task.files.mkdir(parents=True, exist_ok=True)
    plugin = DeepAgentsPlugin(
        model_provider=lambda name: ChatOpenAI(
            model=name, base_url=task.base_url, api_key=KEY, temperature=0, max_retries=0
        ),
        backends={"files": lambda folder: FilesystemBackend(root_dir=folder, virtual_mode=True)},
    )
    async with (
        serve_temporal_for_adapter([plugin]) as server,
        Worker(server.client, task_queue=QUEUE, workflows=[DeepAgent]),
    ):
        given = {"messages": [{"role": "user", "content": task.prompt}]}
        handle = await start_adapter_workflow(server, DeepAgent.run, given)
        return await adapter_workflow_outcome(server, handle, task, "invoke_model")

"""LangChain's Deep Agents with Temporal's plugin for them."""

from datetime import timedelta
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
    )

    from benchmarks.compare.adapter_task import (
        KEY,
        SYSTEM,
        AdapterTask,
        Outcome,
        current_adapter_task,
    )
    from benchmarks.compare.temporal_adapters import (
        QUEUE,
        WORKFLOW,
        adapter_workflow_outcome,
        serve_temporal_for_adapter,
    )

PATIENCE = timedelta(seconds=60)


@workflow.defn(name="DeepAgent")
class DeepAgent:
    @workflow.run
    async def run(self, given: dict[str, Any], state_snapshot: dict[str, Any] | None = None) -> Any:
        backend = TemporalBackend(
            "files",
            factory_argument=str(current_adapter_task().files),
            backend_type=FilesystemBackend,
            activity_options=ActivityConfig(start_to_close_timeout=PATIENCE),
        )
        agent = create_temporal_deep_agent(
            model=current_adapter_task().model,
            system_prompt=SYSTEM,
            backend=backend,
            activity_options={"start_to_close_timeout": PATIENCE},
        )
        result = await run_deep_agent(agent, given, state_snapshot=state_snapshot)
        return result["messages"][-1].content


async def run_deepagents(task: AdapterTask) -> Outcome:
    task.files.mkdir(parents=True)
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
        handle = await server.client.start_workflow(
            DeepAgent.run,
            {"messages": [{"role": "user", "content": task.prompt}]},
            id=WORKFLOW,
            task_queue=QUEUE,
        )
        return await adapter_workflow_outcome(server, handle, task, "invoke_model")

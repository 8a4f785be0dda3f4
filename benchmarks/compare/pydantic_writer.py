"""The Pydantic AI agent, shared by its runners on Temporal and on DBOS."""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import UsageLimits

from benchmarks.compare.adapter_task import KEY, AdapterTask


def writer_agent(
    task: AdapterTask, toolset: FunctionToolset[None], durability: AbstractCapability[None]
) -> Agent[None, str]:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, max_retries=0)
    return Agent(
        OpenAIChatModel(task.model, provider=OpenAIProvider(openai_client=client)),
        name="writer",
        instructions=task.system,
        model_settings=ModelSettings(temperature=0),
        toolsets=[toolset],
        capabilities=[durability],
    )


def pydantic_writer_limits(task: AdapterTask) -> UsageLimits | None:
    """Return lifted limits; None keeps the default of 50 requests per run."""
    return UsageLimits(request_limit=None) if task.lifted else None

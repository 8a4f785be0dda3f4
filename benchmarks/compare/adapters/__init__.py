"""The runners, each used as documented, and how they differ.

Each has a module of its name, such as `plain`, with `async def run_plain(task) -> Outcome`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Adapter:
    title: str
    packages: tuple[str, ...]
    """Required distributions, shown with their versions."""
    note: str
    resumes: str
    """What has to happen for a run to go on after its process was killed."""
    limited: bool = False
    """Whether it limits the length of a run, unless `Task.lifted` raises the limit."""
    temporal: bool = False
    """Whether it needs a Temporal server."""


ADAPTERS = {
    "plain": Adapter(
        "a plain loop",
        ("openai",),
        "The client and a list of messages in memory. Nothing is kept: a killed process begins "
        "anew.",
        "no: it begins anew",
    ),
    "longhaul": Adapter(
        "Longhaul",
        ("temporalio", "openai"),
        "The agent `generalist`, streaming, without its reviewer, for whom the endpoint has no "
        "verdicts. Its work is phases of up to 20 todos with a new conversation each, so it also "
        "asks the model to plan and to close todos; those calls are counted as steps. Files and "
        "conversation are in a store of checkpoints, by hash; the history has references. It "
        "continues as new at 1,000 events. It finds the scope in the instructions.",
        "once a worker is back",
        temporal=True,
    ),
    "langgraph": Adapter(
        "LangGraph with SQLite",
        ("langgraph", "langchain", "langchain-openai", "langgraph-checkpoint-sqlite", "deepagents"),
        "`create_agent` of LangChain, which is a LangGraph, with `AsyncSqliteSaver`, in one "
        "process. Its messages are in a `DeltaChannel` (LangChain's `DeepAgentState`): after each "
        "node the new ones are written, after every 50 the whole conversation, which is what "
        "`create_agent` does after each node by default. They are written behind the run: what is "
        "recorded a step is the mean of all.",
        "when its program calls it again with the same thread",
    ),
    "dbos": Adapter(
        "DBOS with SQLite",
        ("dbos", "pydantic-ai-slim"),
        "`DBOSDurability` of Pydantic AI, in a DBOS workflow in one process. Results of model "
        "calls and of the tool are kept as steps, arguments are not. A run may make 50 requests "
        "unless told otherwise.",
        "when its program is started again",
        limited=True,
    ),
    "openai_agents": Adapter(
        "OpenAI Agents SDK on Temporal",
        ("temporalio-openai-agents", "openai-agents"),
        "Chat Completions, since the endpoint does not speak the Responses API. Each model call "
        "is an activity with the whole conversation as input, the tool is another. `max_turns` is "
        "10 unless told otherwise. The plugin asks for a version of the SDK below 0.23; it is run "
        "with a newer one.",
        "once a worker is back",
        limited=True,
        temporal=True,
    ),
    "pydantic_ai": Adapter(
        "Pydantic AI on Temporal",
        ("pydantic-ai-slim", "temporalio"),
        "`TemporalDurability`, which took the place of `TemporalAgent`. Each model call is an "
        "activity with the whole conversation as input, the tool is another. With a handler for "
        "`continue_as_new`, which hands the conversation on. A run may make 50 requests unless "
        "told otherwise.",
        "once a worker is back",
        limited=True,
        temporal=True,
    ),
    "deepagents": Adapter(
        "Deep Agents on Temporal",
        ("temporalio-deepagents", "deepagents", "langchain-openai"),
        "Its own file tools on a real folder through `TemporalBackend`, its own system prompt and "
        "tools beside. Each model call is an activity with the whole conversation as input. "
        "`run_deep_agent` continues as new between turns; this is one long turn.",
        "once a worker is back",
        temporal=True,
    ),
}
"""In the order of running and showing."""

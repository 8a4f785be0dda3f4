"""The list of all tools: importing this module fills the registry."""

from activities.requirements.tools import (  # noqa: F401 - each enters its tools
    citations,
    graph,
    integration,
    output_collection,
    relevance,
    requirements,
    similarity,
    validation,
)
from activities.toolkit.registry import REGISTRY
from activities.tools import (  # noqa: F401 - each enters its tools
    delegate_tool,
    document_tools,
    file_search,
    file_tools,
    history_search,
    images,
    scope,
    shell_command,
    skills,
    todos,
    tool_search,
    traces,
    verdict,
    wait,
    web,
)

__all__ = ["REGISTRY"]

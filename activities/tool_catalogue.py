"""The list of all tools: importing this module fills the registry."""

from activities.requirements.tools import (  # noqa: F401 - each enters its tools
    citations,
    graph,
    integration,
    outputs,
    relevance,
    requirements,
    similarity,
    validation,
)
from activities.toolkit.registry import REGISTRY
from activities.tools import (  # noqa: F401 - each enters its tools
    delegation,
    documents,
    file_search,
    files,
    history_search,
    images,
    scope,
    shell,
    skills,
    todos,
    tool_search,
    traces,
    verdict,
    wait,
    web,
)

__all__ = ["REGISTRY"]

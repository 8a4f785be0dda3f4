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
    discovery,
    documents,
    file_search,
    files,
    history,
    scope,
    shell,
    todos,
    traces,
    verdict,
    wait,
    web,
)

__all__ = ["REGISTRY"]

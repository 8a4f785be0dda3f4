"""The tools. Importing this package fills the registry."""

from activities.tools import (
    discovery,
    documents,
    files,
    graph,
    history,
    requirements,
    scope,
    todos,
    verdict,
    waiting,
)
from activities.tools.registry import REGISTRY, Tool, select

__all__ = [
    "REGISTRY",
    "Tool",
    "discovery",
    "documents",
    "files",
    "graph",
    "history",
    "requirements",
    "scope",
    "select",
    "todos",
    "verdict",
    "waiting",
]

"""The tools. Importing this package fills the registry."""

from activities.tools import (
    discovery,
    documents,
    files,
    graph,
    history,
    requirements,
    scope,
    searching,
    todos,
    verdict,
    waiting,
    web,
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
    "searching",
    "select",
    "todos",
    "verdict",
    "waiting",
    "web",
]

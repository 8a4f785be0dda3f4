"""The tools. Importing this package fills the registry."""

from activities.tools import (
    assessing,
    citing,
    comparing,
    discovery,
    documents,
    files,
    graph,
    history,
    requirements,
    scope,
    searching,
    todos,
    validating,
    verdict,
    waiting,
    web,
)
from activities.tools.registry import REGISTRY, Tool, select

__all__ = [
    "REGISTRY",
    "Tool",
    "assessing",
    "citing",
    "comparing",
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
    "validating",
    "verdict",
    "waiting",
    "web",
]

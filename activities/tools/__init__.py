"""The tools. Importing this package fills the registry."""

from activities.tools import (
    discovery,
    documents,
    files,
    history,
    requirements,
    scope,
    shell,
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
    "history",
    "requirements",
    "scope",
    "select",
    "shell",
    "todos",
    "verdict",
    "waiting",
    "web",
]

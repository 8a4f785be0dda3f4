"""The tools. Importing this package fills the registry."""

from activities.tools import (
    assessing,
    citing,
    comparing,
    discovery,
    documents,
    files,
    history,
    requirements,
    scope,
    todos,
    validating,
    verdict,
    waiting,
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
    "history",
    "requirements",
    "scope",
    "select",
    "todos",
    "validating",
    "verdict",
    "waiting",
]

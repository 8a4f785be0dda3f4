"""The list of all tools: importing this module fills the registry."""

from activities.toolkit.registry import REGISTRY
from activities.tools import (  # noqa: F401 - each enters its tools
    assessing,
    citing,
    collecting,
    comparing,
    discovery,
    documents,
    files,
    graph,
    history,
    integrating,
    requirements,
    scope,
    searching,
    shell,
    todos,
    traces,
    validating,
    verdict,
    waiting,
    web,
)

__all__ = ["REGISTRY"]

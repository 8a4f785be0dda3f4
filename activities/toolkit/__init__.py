"""How tools are declared, checked and offered; the tools are in `activities.tools`."""

from activities.toolkit.context import ToolContext
from activities.toolkit.errors import DependencyUnavailable, ToolError
from activities.toolkit.registry import tool

__all__ = ["DependencyUnavailable", "ToolContext", "ToolError", "tool"]

"""How tools are declared, checked and offered; the tools are in `activities.tools`."""

from activities.toolkit.errors import DependencyUnavailable, ToolError
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext

__all__ = ["DependencyUnavailable", "ToolContext", "ToolError", "tool"]

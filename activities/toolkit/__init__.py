"""How tools are declared, checked and offered; the tools are in `activities.tools`."""

from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError

__all__ = ["DependencyUnavailable", "ToolContext", "ToolError", "tool"]

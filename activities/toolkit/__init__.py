"""What tools are made of and how an agent comes by them; the tools are in `activities.tools`."""

from activities.toolkit.context import ToolContext
from activities.toolkit.errors import DependencyUnavailable, ToolError
from activities.toolkit.registry import tool

__all__ = ["DependencyUnavailable", "ToolContext", "ToolError", "tool"]

"""The tools. Importing this package fills the registry."""

from activities.tools import documents, files, requirements, todos, waiting
from activities.tools.registry import REGISTRY, Tool, select

__all__ = ["REGISTRY", "Tool", "documents", "files", "requirements", "select", "todos", "waiting"]

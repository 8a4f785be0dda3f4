"""The tools. Importing this package fills the registry; the order here is the order of the wire."""

from activities.tools import files, todos, documents, requirements  # noqa: F401, I001
from activities.tools.registry import REGISTRY, Tool, select

__all__ = ["REGISTRY", "Tool", "select"]

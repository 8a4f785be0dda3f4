"""The server that jobs have everywhere."""

from tests.workflows.conftest import temporal

__all__ = ["temporal"]

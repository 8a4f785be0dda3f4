"""The server that all jobs here share."""

from tests.workflows.conftest import temporal

__all__ = ["temporal"]

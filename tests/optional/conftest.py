"""The server of the workflow tests."""

from tests.workflows.conftest import temporal

__all__ = ["temporal"]

"""The server and roots of the workflow tests."""

from tests.workflows.conftest import root, temporal

__all__ = ["root", "temporal"]

"""The server and root that jobs have everywhere."""

from tests.workflows.conftest import root, temporal

__all__ = ["root", "temporal"]

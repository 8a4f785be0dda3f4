"""The hook protocol's names of tools."""

from __future__ import annotations

from activities.guards.names import tool_there
from activities.tools import REGISTRY


def test_a_server_s_tool_has_the_protocol_s_prefix_and_no_tool_of_ours_looks_like_one() -> None:
    assert tool_there("tracker__create_issue") == "mcp__tracker__create_issue"
    assert tool_there("write_file") == "Write"
    assert not [name for name in REGISTRY if "__" in name]

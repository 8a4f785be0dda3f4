"""The hook protocol's names of tools."""

from __future__ import annotations

from activities.guards.names import arguments_there, tool_there
from activities.tools import REGISTRY


def test_a_server_s_tool_has_the_protocol_s_prefix_and_no_tool_of_ours_looks_like_one() -> None:
    assert tool_there("tracker__create_issue") == "mcp__tracker__create_issue"
    assert tool_there("write_file") == "Write"
    assert not [name for name in REGISTRY if "__" in name]


def test_what_scripts_look_for_has_the_protocols_names() -> None:
    there = {
        "write_file": "Write",
        "append_file": "Edit",
        "edit_file": "Edit",
        "read_file": "Read",
        "run_command": "Bash",
        "search_files": "Grep",
        "list_files": "Glob",
    }
    assert {tool: tool_there(tool) for tool in there} == there
    assert arguments_there("run_command", {"command": "ls"}) == {"command": "ls"}
    edit = arguments_there("edit_file", {"path": "a", "old": "b", "new": "c"})
    assert edit == {"file_path": "a", "old_string": "b", "new_string": "c"}

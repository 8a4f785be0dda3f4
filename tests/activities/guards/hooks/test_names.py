"""The hook protocol's names of tools."""

from __future__ import annotations

from activities.guards.hooks.names import (
    arguments_here,
    arguments_there,
    response_there,
    tool_there,
)
from activities.toolkit.registry import REGISTRY


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
    assert arguments_there("run_command", {"command": "ls"}, "/w") == {"command": "ls"}
    edit = arguments_there("edit_file", {"path": "a", "old": "b", "new": "c"}, "/w")
    assert edit == {"file_path": "/w/a", "old_string": "b", "new_string": "c"}
    assert arguments_there("list_files", {"path": "."}, "/w") == {"path": "/w"}
    ran = response_there("run_command", {"command": "ls"}, "Exit code 0. No output.")
    assert ran["stdout"] == ran["text"] == "Exit code 0. No output."
    assert response_there("edit_file", edit, "Done.")["filePath"] == "/w/a"


def test_arguments_that_a_script_gives_back_as_they_were_are_not_rewritten() -> None:
    for tool, given in (
        ("append_file", {"path": "./a", "content": "c"}),
        ("list_files", {"path": "."}),
        ("edit_file", {"path": "a", "old": "b", "new": "c"}),
    ):
        there = arguments_there(tool, given, "/w")
        assert arguments_here(tool, there, given, "/w") == given
    assert arguments_here("list_files", {"path": "/w"}, {"path": "a"}, "/w") == {"path": "."}

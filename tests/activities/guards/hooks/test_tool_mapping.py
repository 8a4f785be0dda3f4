"""The hook protocol's names of tools."""

from activities.guards.hooks.voters import (
    arguments_from_hook,
    hook_arguments,
    hook_tool_name,
    hook_tool_response,
)
from activities.toolkit.registry import REGISTRY


def test_a_server_s_tool_has_the_protocol_s_prefix_and_no_tool_of_ours_looks_like_one() -> None:
    assert hook_tool_name("tracker__create_issue") == "mcp__tracker__create_issue"
    assert hook_tool_name("write_file") == "Write"
    assert not [name for name in REGISTRY if "__" in name]


def test_what_scripts_look_for_has_the_protocols_names() -> None:
    hook_names = {
        "write_file": "Write",
        "append_file": "Edit",
        "edit_file": "Edit",
        "read_file": "Read",
        "run_command": "Bash",
        "search_files": "Grep",
        "list_files": "Glob",
    }
    assert {tool: hook_tool_name(tool) for tool in hook_names} == hook_names
    assert hook_arguments("run_command", {"command": "ls"}, "/w") == {"command": "ls"}
    edit = hook_arguments("edit_file", {"path": "a", "old": "b", "new": "c"}, "/w")
    assert edit == {"file_path": "/w/a", "old_string": "b", "new_string": "c"}
    assert hook_arguments("list_files", {"path": "."}, "/w") == {"path": "/w"}
    ran = hook_tool_response("run_command", {"command": "ls"}, "Exit code 0. No output.")
    assert ran["stdout"] == ran["text"] == "Exit code 0. No output."
    assert hook_tool_response("edit_file", edit, "Done.")["filePath"] == "/w/a"


def test_arguments_that_a_script_gives_back_as_they_were_are_not_rewritten() -> None:
    for tool, arguments in (
        ("append_file", {"path": "./a", "content": "c"}),
        ("list_files", {"path": "."}),
        ("edit_file", {"path": "a", "old": "b", "new": "c"}),
    ):
        hook_input = hook_arguments(tool, arguments, "/w")
        assert arguments_from_hook(tool, hook_input, arguments, "/w") == arguments
    assert arguments_from_hook("list_files", {"path": "/w"}, {"path": "a"}, "/w") == {"path": "."}

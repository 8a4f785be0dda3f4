"""Map our tools and their arguments to the hook protocol's names, and back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HookNames:
    """A tool's name in the protocol, and the names of arguments that differ there."""

    tool: str
    arguments: dict[str, str]


FILE = {"path": "file_path"}
NAMES = {
    "write_file": HookNames("Write", FILE),
    # Hooks on edits must see this tool as well, so it appears as an edit that replaces nothing.
    "append_file": HookNames("Edit", {**FILE, "content": "new_string"}),
    "edit_file": HookNames("Edit", {**FILE, "old": "old_string", "new": "new_string"}),
    "read_file": HookNames("Read", FILE),
    "run_command": HookNames("Bash", {}),
    "search_files": HookNames("Grep", {"query": "pattern"}),
    "list_files": HookNames("Glob", {}),
}


def hook_tool_name(tool: str) -> str:
    """Return the protocol's name of a tool; our name if it has none."""
    if tool in NAMES:
        return NAMES[tool].tool
    # A tool of an MCP server: none of ours has this in its name.
    return f"mcp__{tool}" if "__" in tool else tool


def hook_arguments(tool: str, arguments: dict[str, Any], workspace: str) -> dict[str, Any]:
    """Return the arguments under the protocol's names.

    Paths become absolute: scripts compare them with the project's folder, or search for `/src/`.

    Args:
        workspace: The folder that relative paths start from.
    """
    if tool not in NAMES:
        return dict(arguments)
    values = dict(arguments)
    if isinstance(path := values.get("path"), str):
        values["path"] = os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118
    renamed = {NAMES[tool].arguments.get(name, name): value for name, value in values.items()}
    return {**renamed, "old_string": ""} if tool == "append_file" else renamed


def hook_tool_response(tool: str, hook_input: dict[str, Any], result: str) -> dict[str, Any]:
    """Return a tool's result with the fields that scripts of the protocol read.

    Args:
        there: The arguments under the protocol's names.
    """
    if tool == "run_command":
        return {"text": result, "stdout": result, "stderr": ""}
    path = hook_input.get("file_path")
    return {"text": result, "filePath": path} if path else {"text": result}


def arguments_from_hook(
    tool: str, updated_input: dict[str, Any], arguments: dict[str, Any], workspace: str
) -> dict[str, Any]:
    """Return our arguments after `updatedInput`, which may use the protocol's names or ours.

    Args:
        workspace: The folder that absolute paths are made relative to.
    """
    names = {
        hook_name: tool_name
        for tool_name, hook_name in (NAMES[tool].arguments if tool in NAMES else {}).items()
    }
    sent = hook_arguments(tool, arguments, workspace)
    # Scripts return arguments that they do not mean to change.
    other = {
        name: value
        for name, value in updated_input.items()
        if name not in sent or sent[name] != value
    }
    updated = {names.get(name, name): value for name, value in other.items()}
    if tool == "append_file":
        updated.pop("old_string", None)
    if isinstance(path := updated.get("path"), str) and f"{path}/".startswith(f"{workspace}/"):
        updated["path"] = os.path.relpath(path, workspace)
    return {**arguments, **updated}

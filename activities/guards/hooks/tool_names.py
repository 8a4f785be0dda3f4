"""The hook protocol's names for our tools and their arguments, and back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HookNames:
    """A tool's name there, and there the name of each argument that has another."""

    tool: str
    arguments: dict[str, str]


FILE = {"path": "file_path"}
NAMES = {
    "write_file": HookNames("Write", FILE),
    # What guards edits has to see it as well, so it is one that replaces nothing.
    "append_file": HookNames("Edit", {**FILE, "content": "new_string"}),
    "edit_file": HookNames("Edit", {**FILE, "old": "old_string", "new": "new_string"}),
    "read_file": HookNames("Read", FILE),
    "run_command": HookNames("Bash", {}),
    "search_files": HookNames("Grep", {"query": "pattern"}),
    "list_files": HookNames("Glob", {}),
}


def hook_tool_name(tool: str) -> str:
    """The protocol's name of a tool; ours where it has none."""
    if tool in NAMES:
        return NAMES[tool].tool
    # Of an MCP server's: no tool of ours has this in its name.
    return f"mcp__{tool}" if "__" in tool else tool


def hook_arguments(tool: str, arguments: dict[str, Any], workspace: str) -> dict[str, Any]:
    """The arguments under the protocol's names.

    Paths are absolute there: scripts hold them against the project's folder, or look for `/src/`.

    Args:
        workspace: The folder that relative paths are in.
    """
    if tool not in NAMES:
        return dict(arguments)
    values = dict(arguments)
    if isinstance(path := values.get("path"), str):
        values["path"] = os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118
    renamed = {NAMES[tool].arguments.get(name, name): value for name, value in values.items()}
    return {**renamed, "old_string": ""} if tool == "append_file" else renamed


def hook_response(tool: str, there: dict[str, Any], result: str) -> dict[str, Any]:
    """A tool's result, also where the protocol's scripts look for it.

    Args:
        there: The arguments under the protocol's names.
    """
    if tool == "run_command":
        return {"text": result, "stdout": result, "stderr": ""}
    path = there.get("file_path")
    return {"text": result, "filePath": path} if path else {"text": result}


def own_arguments(
    tool: str, updated_input: dict[str, Any], arguments: dict[str, Any], workspace: str
) -> dict[str, Any]:
    """Our arguments with what `updatedInput` gives instead, under its names or under ours.

    Args:
        workspace: The folder, in which absolute paths are made relative.
    """
    names = {
        there: here for here, there in (NAMES[tool].arguments if tool in NAMES else {}).items()
    }
    sent = hook_arguments(tool, arguments, workspace)
    # Scripts give back what they do not mean to change.
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

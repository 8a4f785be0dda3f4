"""The hook protocol's names for our tools and their arguments, and back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Names:
    """A tool's name there, and there the name of each argument that has another."""

    tool: str
    arguments: dict[str, str]


FILE = {"path": "file_path"}
NAMES = {
    "write_file": Names("Write", FILE),
    # What guards edits has to see it as well, so it is one that replaces nothing.
    "append_file": Names("Edit", {**FILE, "content": "new_string"}),
    "edit_file": Names("Edit", {**FILE, "old": "old_string", "new": "new_string"}),
    "read_file": Names("Read", FILE),
    "run_command": Names("Bash", {}),
    "search_files": Names("Grep", {"query": "pattern"}),
    "list_files": Names("Glob", {}),
}


def tool_there(tool: str) -> str:
    """The protocol's name of a tool; ours where it has none."""
    if tool in NAMES:
        return NAMES[tool].tool
    # Of an MCP server's: no tool of ours has this in its name.
    return f"mcp__{tool}" if "__" in tool else tool


def arguments_there(tool: str, arguments: dict[str, Any], workspace: str) -> dict[str, Any]:
    """The arguments under the protocol's names.

    Paths are absolute there: scripts hold them against the project's folder, or look for `/src/`.

    Args:
        workspace: The folder that relative paths are in.
    """
    if tool not in NAMES:
        return dict(arguments)
    given = dict(arguments)
    if isinstance(path := given.get("path"), str):
        given["path"] = os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118
    made = {NAMES[tool].arguments.get(name, name): value for name, value in given.items()}
    return {**made, "old_string": ""} if tool == "append_file" else made


def response_there(tool: str, there: dict[str, Any], result: str) -> dict[str, Any]:
    """A tool's result, also where the protocol's scripts look for it.

    Args:
        there: The arguments under the protocol's names.
    """
    if tool == "run_command":
        return {"text": result, "stdout": result, "stderr": ""}
    path = there.get("file_path")
    return {"text": result, "filePath": path} if path else {"text": result}


def arguments_here(
    tool: str, given: dict[str, Any], arguments: dict[str, Any], workspace: str
) -> dict[str, Any]:
    """Our arguments with what `updatedInput` gives instead, under its names or under ours.

    Args:
        workspace: The folder, in which absolute paths are made relative.
    """
    names = {
        there: here for here, there in (NAMES[tool].arguments if tool in NAMES else {}).items()
    }
    told = arguments_there(tool, arguments, workspace)
    # Scripts give back what they do not mean to change.
    other = {
        name: value for name, value in given.items() if name not in told or told[name] != value
    }
    updated = {names.get(name, name): value for name, value in other.items()}
    if tool == "append_file":
        updated.pop("old_string", None)
    if isinstance(path := updated.get("path"), str) and f"{path}/".startswith(f"{workspace}/"):
        updated["path"] = os.path.relpath(path, workspace)
    return {**arguments, **updated}

"""The hook protocol's names for our tools and their arguments, and back."""

from __future__ import annotations

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


def arguments_there(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments under the protocol's names."""
    names = NAMES[tool].arguments if tool in NAMES else {}
    made = {names.get(name, name): value for name, value in arguments.items()}
    return {**made, "old_string": ""} if tool == "append_file" else made


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
    updated = {names.get(name, name): value for name, value in given.items()}
    if tool == "append_file":
        updated.pop("old_string", None)
    if isinstance(path := updated.get("path"), str) and path.startswith(f"{workspace}/"):
        updated["path"] = path.removeprefix(f"{workspace}/")
    return {**arguments, **updated}

"""Pages of a server's tools, checked tool by tool before the client reads them as a whole.

The client takes a page or none of it, so that one tool that does not fit would take all others
away. What a tool needs not be offered, such as an icon, is left out of it; a tool that does not fit
without is left out of the page.
"""

from __future__ import annotations

from typing import Any

from mcp.types import Tool
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from activities.redaction.secrets import redact
from protocol.short_text import one_line
from protocol.validation_errors import first_validation_errors

LIST = "tools/list"
DISPENSABLE = ("icons", "annotations", "title", "execution", "_meta", "description", "outputSchema")
"""What a tool can be offered without. Without annotations a call counts as one that must not be
repeated.
"""
REASON = 200


def mend_tool_page(page: dict[str, Any], version: str, left_out: dict[str, str]) -> dict[str, Any]:
    """Return a page of tools that the client reads.

    Args:
        page: The server's answer.
        version: The version of the protocol.
        left_out: Receives the names of tools that do not fit, with the reason.
    """
    tools = page.get("tools")
    if not isinstance(tools, list):
        return page
    cursor = page.get("nextCursor")
    rest = {key: value for key, value in page.items() if key not in ("tools", "nextCursor")}
    if cursor and isinstance(cursor, str):
        rest["nextCursor"] = cursor
    frame = {**rest, "tools": []}
    if _misfit(None, frame, version):
        return page
    kept: list[dict[str, Any]] = []
    for place, tool in enumerate(tools, 1):
        fitting = _fitting_tool(tool, frame, version)
        if isinstance(fitting, str):
            name = tool.get("name") if isinstance(tool, dict) else None
            known = name if isinstance(name, str) and name else f"number {place}"
            left_out[one_line(redact(known), 100)] = one_line(redact(fitting), REASON).rstrip(".")
        else:
            kept.append(fitting)
    return {**rest, "tools": kept}


def _fitting_tool(tool: object, frame: dict[str, Any], version: str) -> dict[str, Any] | str:
    """Return the tool, if need be without what it can do without; else why it does not fit."""
    if not isinstance(tool, dict):
        return "its declaration is no object"
    if not _misfit(tool, frame, version):
        return tool
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        return "it has no name"
    if not isinstance(schema := tool.get("inputSchema"), dict):
        return "it declares no inputSchema" if schema is None else "its inputSchema is no schema"
    if "type" not in schema:
        tool = {**tool, "inputSchema": {"type": "object", **schema}}
    for key in DISPENSABLE:
        less = {name: value for name, value in tool.items() if name != key}
        # A key that fits stays.
        bare = {name: value for name, value in less.items() if name not in DISPENSABLE}
        if key in tool and _misfit({**bare, key: tool[key]}, frame, version):
            tool = less
    return _misfit(tool, frame, version) or tool


def _misfit(tool: dict[str, Any] | None, frame: dict[str, Any], version: str) -> str:
    """Return why the client would not read a tool, or the frame; empty if it would."""
    try:
        if tool is not None:
            Tool.model_validate(tool)
        tools = [] if tool is None else [tool]
        validate_server_result(LIST, version, {**frame, "tools": tools})
    except ValidationError as error:
        return first_validation_errors(error)
    return ""

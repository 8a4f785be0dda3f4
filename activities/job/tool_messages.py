"""What messages of tool calls hold: ids, results, and the keys of broken arguments."""

from __future__ import annotations

from typing import Any

MALFORMED = "malformed_arguments"
"""Key for arguments that are not JSON, so that they can be sent back."""
CUT = "arguments_cut_short"
"""Key for arguments that the output limit cut."""
MIXED_UP = "arguments_mixed_up"
"""Key for arguments of several calls that an endpoint sent indistinguishably."""
WRITTEN = "[written; read_file shows it]"
"""What stands for a text in old calls that wrote it into a file."""
ERROR_PREFIX = "Error: "
"""Prefix of results of failed calls."""


def tool_call_id(step: int, index: int) -> str:
    """Return the id of a tool call, derived from its place so that every run has the same."""
    return f"s{step}c{index}"


def tool_result_message(step: int, index: int, content: str) -> dict[str, Any]:
    """Return the message with the result of a tool call."""
    return {"role": "tool", "tool_call_id": tool_call_id(step, index), "content": content}

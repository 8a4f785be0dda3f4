"""The tool calls and results in a conversation: the newest, those that succeeded, and repeats."""

from __future__ import annotations

from typing import Any

from activities.job.conversation import Conversation
from activities.job.tool_messages import ERROR_PREFIX, tool_call_id
from activities.redaction.credentials import encode_without_credentials
from protocol.short_text import one_line

SAME_FROM = 1000
"""Results from this many characters are not appended a second time."""
CALL_CHARACTERS = 200
"""Most characters shown of the call that had the same result."""
LOOK_BACK = 64
"""Number of messages searched for the same result, which bounds the cost of a step."""


def find_same_result(conversation: Conversation, content: str, start: int) -> str:
    """Return a recent call with this very result, as `read_file {"path": "a.md"}`; else empty.

    The call's id would not help: over the Responses API the model knows the provider's own ids.

    Args:
        content: The result. Short ones are not searched for: naming another is no shorter.
        start: Number of the first message that is shown unchanged.
    """
    if len(content) < SAME_FROM:
        return ""
    ending = encode_without_credentials(content)
    for number in range(len(conversation) - 1, max(start, len(conversation) - LOOK_BACK) - 1, -1):
        if ending in conversation.message_bytes(number):
            return _call_text(conversation, number)
    return ""


def _call_text(conversation: Conversation, number: int) -> str:
    """Return the call whose result is the message with this number, as one line."""
    answered = conversation.message(number)["tool_call_id"]
    for earlier in range(number - 1, -1, -1):
        for call in conversation.message(earlier).get("tool_calls", ()):
            if call["id"] == answered:
                function = call["function"]
                return one_line(f"{function['name']} {function['arguments']}", CALL_CHARACTERS)
    return ""


def list_tools_run(conversation: Conversation) -> frozenset[str]:
    """Return the tools that succeeded since the last todo was completed."""
    fine: set[str] = set()
    tools: set[str] = set()
    for number in reversed(range(len(conversation))):
        message = conversation.message(number)
        if message["role"] == "tool" and not str(message["content"]).startswith(ERROR_PREFIX):
            fine.add(message["tool_call_id"])
        names = [c["function"]["name"] for c in message.get("tool_calls", []) if c["id"] in fine]
        if "todo_complete" in names:
            last = len(names) - names[::-1].index("todo_complete")
            return frozenset(tools.union(names[last:]))
        tools.update(names)
    return frozenset(tools)


def count_newest_results(conversation: Conversation) -> int:
    """Return the number of results of the newest reply's calls."""
    count = 0
    for number in reversed(range(len(conversation))):
        role = conversation.message(number)["role"]
        if role == "assistant":
            break
        count += role == "tool"
    return count


def newest_calls(conversation: Conversation, step: int) -> list[dict[str, Any]]:
    """Return the tool calls of the reply of this step, which must be the newest.

    Raises:
        LookupError: the newest reply is of another step.
    """
    for number in reversed(range(len(conversation))):
        message = conversation.message(number)
        if message["role"] == "assistant":
            calls: list[dict[str, Any]] = message.get("tool_calls", [])
            if calls and calls[0]["id"] == tool_call_id(step, 0):
                return calls
            break
    raise LookupError(f"the conversation holds no reply of step {step}")

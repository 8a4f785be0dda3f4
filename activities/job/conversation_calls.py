"""The tool calls and results in a conversation: the newest, those that succeeded, and repeats."""

from typing import Any

from activities.job.conversation import Conversation
from activities.redaction.credentials import encode_without_credentials
from activities.redaction.secrets import redact
from activities.text.safe_text import cut_middle
from protocol.short_text import one_line

SAME_FROM = 1000
"""Results from this many characters are not appended a second time."""
CALL_CHARACTERS = 200
LOOK_BACK = 64
"""Number of messages searched for the same result, which bounds the cost of a step."""


def find_same_result(conversation: Conversation, content: str, start: int) -> str:
    """Return a recent call with this very result, as `read_file {"path": "a.md"}`; else empty."""
    if len(content) < SAME_FROM:
        return ""
    ending = encode_without_credentials(content)
    for number in range(len(conversation) - 1, max(start, len(conversation) - LOOK_BACK) - 1, -1):
        if ending in conversation.message_bytes(number):
            return _call_text(conversation, number)
    return ""


def _call_text(conversation: Conversation, number: int) -> str:
    answered = conversation.message(number)["tool_call_id"]
    for earlier in range(number - 1, -1, -1):
        for call in conversation.message(earlier).get("tool_calls", ()):
            if call["id"] == answered:
                function = call["function"]
                return one_line(f"{function['name']} {function['arguments']}", CALL_CHARACTERS)
    return ""


def list_tools_run(conversation: Conversation) -> frozenset[str]:
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
    count = 0
    for number in reversed(range(len(conversation))):
        role = conversation.message(number)["role"]
        if role == "assistant":
            break
        count += role == "tool"
    return count


def newest_calls(conversation: Conversation, step: int) -> list[dict[str, Any]]:
    """Return the tool calls of the newest reply. Raises LookupError if it is not of this step."""
    for number in reversed(range(len(conversation))):
        message = conversation.message(number)
        if message["role"] == "assistant":
            calls: list[dict[str, Any]] = message.get("tool_calls", [])
            if calls and calls[0]["id"] == tool_call_id(step, 0):
                return calls
            break
    raise LookupError(f"the conversation holds no reply of step {step}")


MALFORMED = "malformed_arguments"
"""Key for arguments that are not JSON, so that they can be sent back."""
CUT = "arguments_cut_short"
"""Key for arguments that the output limit cut."""
MIXED_UP = "arguments_mixed_up"
"""Key for arguments of several calls that an endpoint sent indistinguishably."""
WRITTEN = "[written; read_file shows it]"
"""What stands for a text in old calls that wrote it into a file."""
ERROR_PREFIX = "Error: "


def tool_call_id(step: int, index: int) -> str:
    """Return the id of a tool call, derived from its place so that every run has the same."""
    return f"s{step}c{index}"


def tool_result_message(step: int, index: int, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": tool_call_id(step, index), "content": content}


def result_error_line(text: str) -> str:
    return redact(text.splitlines()[0][:5000])[:200]


def truncate_result(text: str, limit: int) -> str:
    """Cut a result to `limit` characters, replacing the middle by a line that says so."""
    if len(text) <= limit:
        return text
    mark = "[TRUNCATED {gone} characters; ask for a part: offset, limit and column, pages, a path]"
    return cut_middle(text, limit - 200, mark)

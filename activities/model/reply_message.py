"""A streamed reply as the message that is stored, and the data beside it for its provider."""

import json
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from activities.job.conversation_calls import CUT, MALFORMED, MIXED_UP, tool_call_id
from activities.model.reply_stream import StreamedReply

MAX_CUT_TEXT = 1_000
CUT_TEXT = "[the rest of this reply, which was cut at its limit, is left out]"
NO_ANSWER = "(no answer)"
"""Content stored for a reply without text and calls."""


def reply_message(step: int, streamed: StreamedReply) -> dict[str, Any]:
    text = streamed.text
    if streamed.finish == "length" and len(text) > MAX_CUT_TEXT:
        # A model that runs on repeats what it finds of that, and it fills a small window.
        text = f"{text[:MAX_CUT_TEXT].rstrip()} {CUT_TEXT}"
    message: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
    if streamed.calls:
        cut = streamed.finish == "length"
        message["tool_calls"] = [
            {
                "id": tool_call_id(step, index),
                "type": "function",
                "function": {
                    "name": name,
                    # Models imitate calls they find in the conversation, so broken ones are hidden.
                    "arguments": "{}" if wrap_unusable_arguments(raw, cut=cut) else raw or "{}",
                },
            }
            for index, (name, raw) in enumerate(streamed.calls)
        ]
    elif message["content"] is None:
        # Some endpoints refuse messages that consist only of white space.
        message["content"] = NO_ANSWER
    return message


def reply_provider_data(step: int, streamed: StreamedReply) -> dict[str, Any] | None:
    """Return data stored beside the message for its provider only; None if there is none."""
    data: dict[str, Any] = {}
    if streamed.items:
        function_calls = [item for item in streamed.items if item.get("type") == "function_call"]
        ids = {
            tool_call_id(step, index): call["call_id"] for index, call in enumerate(function_calls)
        }
        data = {"items": streamed.items, "ids": ids}
    if streamed.fields:
        data["fields"] = streamed.fields
    if streamed.extras:
        data["extras"] = streamed.extras
    return {"maker": streamed.maker, **data} if data else None


def wrap_unusable_arguments(raw: str, *, cut: bool) -> str:
    """Return arguments that may not be sent back, wrapped as the tool will get them; empty if
    valid.

    Endpoints refuse a conversation with arguments that are no JSON object, which for strict parsers
    includes NaN and lone surrogates.
    """
    with suppress(ValueError):
        parsed = from_json(raw or "{}", allow_inf_nan=False)
        if isinstance(parsed, dict):
            return raw if MIXED_UP in parsed else ""
    return json.dumps({CUT if cut else MALFORMED: raw[:2000]}, ensure_ascii=False)

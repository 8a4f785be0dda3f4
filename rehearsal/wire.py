"""The model's side of the OpenAI Chat Completions protocol: a model's possible answers, in bytes.

Everything is a pure function of the request: no clock, no random ids. A retried call gets the same
answer byte for byte.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

Request = dict[str, Any]
Arguments = dict[str, Any] | str
"""Arguments of a tool call; a string is sent verbatim, to produce malformed JSON."""

MAX_PIECE_CHARACTERS = 2000
"""Maximum characters of arguments in one chunk of a stream."""


@dataclass(frozen=True)
class Reply:
    """An ordinary answer: text, tool calls, or both."""

    content: str | None = None
    calls: list[tuple[str, Arguments]] = field(default_factory=list)
    finish: str | None = None
    """Finish reason; None means `tool_calls` or `stop`."""
    is_refusal: bool = False
    """Whether the text is sent as a refusal."""

    @property
    def text_field(self) -> str:
        return "refusal" if self.is_refusal else "content"

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Failure:
    """An HTTP error in the protocol's form."""

    status: int
    message: str = "scripted failure"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "invalid_request_error"

    @property
    def body(self) -> bytes:
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return json.dumps({"error": error}).encode()


@dataclass(frozen=True)
class Hang:
    """Headers without a body."""


@dataclass(frozen=True)
class Cut:
    """The connection breaks after the first half of the answer."""

    reply: Reply


@dataclass(frozen=True)
class Stall:
    """The first half of the answer, a pause, the other half; without `seconds` it never comes."""

    reply: Reply
    seconds: float | None = None


Answer = Reply | Failure | Hang | Cut | Stall
Model = Callable[[Request], Answer]


def call(name: str, **arguments: Any) -> Reply:
    """Return a reply of one tool call."""
    return Reply(calls=[(name, arguments)])


@dataclass(frozen=True)
class WireRequest:
    request: Request
    digest: str
    """SHA-1 of the body, from which the answer's ids are derived."""
    size: int

    @property
    def streams(self) -> bool:
        return bool(self.request.get("stream"))

    @property
    def wants_usage(self) -> bool:
        return bool((self.request.get("stream_options") or {}).get("include_usage"))


def parse_wire_request(body: bytes) -> WireRequest | Failure:
    """Parse a request's body; return an error to answer with if it is no chat request."""
    try:
        request = from_json(body)
    except ValueError as error:
        return Failure(400, f"The body is not valid JSON: {error}")
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        return Failure(400, "The body must be an object with a list of messages.")
    digest = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    return WireRequest(request, digest, len(body))


def answer_wire_request(model: Model, request: Request) -> Answer:
    """Return the model's answer; an exception of the model becomes an HTTP 400 with its text.

    A client would take anything else for a lost connection and retry for ever.
    """
    try:
        return model(request)
    except Exception as error:
        message = f"the rehearsal model failed: {type(error).__name__}: {error}"
        return Failure(400, message, code="rehearsal_error")


def estimate_wire_usage(incoming: WireRequest, reply: Reply) -> dict[str, Any]:
    """Estimate token counts at four characters a token.

    `cached_tokens` is what a perfect prefix cache would have: everything but the last exchange and
    the todo list; 0 for a first request. Earlier requests are not taken into account.
    """
    prompt = incoming.size // 4
    messages = incoming.request["messages"]
    fresh = sum(len(str(message)) for message in messages[-3:]) // 4
    cached = max(0, prompt - fresh) if len(messages) > 3 else 0
    written = len(reply.content or "") + sum(
        len(name) + len(_wire_arguments_text(arguments)) for name, arguments in reply.calls
    )
    completion = written // 4 + 1
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def encode_wire_reply(incoming: WireRequest, reply: Reply) -> bytes:
    """Return the answer as one `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    message[reply.text_field] = reply.content
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": _wire_call_id(incoming, index),
                "type": "function",
                "function": {"name": name, "arguments": _wire_arguments_text(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    completion = {
        "id": f"chatcmpl-{incoming.digest[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": incoming.request.get("model", "rehearsal"),
        "choices": [choice],
        "usage": estimate_wire_usage(incoming, reply),
    }
    return json.dumps(completion).encode()


def wire_response_body(request: WireRequest, reply: Reply) -> bytes:
    """Return a whole reply as the bytes of a response's body."""
    if request.streams:
        return b"".join(stream_wire_reply(request, reply))
    return encode_wire_reply(request, reply)


def stream_wire_reply(incoming: WireRequest, reply: Reply) -> list[bytes]:
    """Yield the answer as server-sent events."""
    model = json.dumps(incoming.request.get("model", "rehearsal"))
    head = (
        f'data: {{"id":"chatcmpl-{incoming.digest[:24]}","object":"chat.completion.chunk",'
        f'"created":0,"model":{model},"choices":['
    )
    # Only the delta changes between events, so serialise the rest once.
    events = [
        f'{head}{{"index":0,"delta":{json.dumps(delta)},"finish_reason":null}}]}}\n\n'
        for delta in _wire_stream_deltas(incoming, reply)
    ]
    finish = json.dumps(reply.finish_reason)
    events.append(f'{head}{{"index":0,"delta":{{}},"finish_reason":{finish}}}]}}\n\n')
    if incoming.wants_usage:
        events.append(f'{head}],"usage":{json.dumps(estimate_wire_usage(incoming, reply))}}}\n\n')
    events.append("data: [DONE]\n\n")
    return [event.encode() for event in events]


def _wire_stream_deltas(incoming: WireRequest, reply: Reply) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.content:
        third = len(reply.content) // 3 + 1
        deltas += [{reply.text_field: piece} for piece in _split_wire_text(reply.content, third)]
    for index, (name, arguments) in enumerate(reply.calls):
        text = _wire_arguments_text(arguments)
        first, *rest = _split_wire_text(text, min(MAX_PIECE_CHARACTERS, len(text) // 2 + 1))
        opening = {
            "index": index,
            "id": _wire_call_id(incoming, index),
            "type": "function",
            "function": {"name": name, "arguments": first},
        }
        deltas.append({"tool_calls": [opening]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest
        ]
    return deltas


def _split_wire_text(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


def _wire_arguments_text(arguments: Arguments) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _wire_call_id(incoming: WireRequest, index: int) -> str:
    return f"call_{incoming.digest[:20]}_{index}"

"""A stand-in for a provider of the Responses API, which refuses what the real one refuses.

Based on the client's types and on reported refusals: unknown parameters, reasoning without the item
that followed it or the reverse, items that were changed or made by another model, calls without
outputs. The model behind it is one of the rehearsal's.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from openai.types.responses import (
    EasyInputMessageParam,
    ResponseFunctionToolCallParam,
    ResponseOutputMessageParam,
    ResponseReasoningItemParam,
)
from openai.types.responses.function_tool_param import FunctionToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_input_image_content_param import ResponseInputImageContentParam
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.responses.response_input_text_content_param import ResponseInputTextContentParam

from rehearsal import wire
from tests.provider.cache import PromptCache, blocks_of

PARTS: dict[str, Any] = {
    "input_text": ResponseInputTextContentParam,
    "input_image": ResponseInputImageContentParam,
}
NOT_STATELESS = ("previous_response_id", "conversation", "background", "prompt")
ITEMS: dict[str, Any] = {
    "reasoning": ResponseReasoningItemParam,
    "function_call": ResponseFunctionToolCallParam,
    "function_call_output": FunctionCallOutput,
}
UNREADABLE = "The encrypted content for item {} could not be verified."
ALONE = "Item '{}' of type 'reasoning' was provided without its required following item."
BEREFT = (
    "Item '{}' of type 'function_call' was provided without its required 'reasoning' item: '{}'."
)
NOT_STORED = "Item with id '{}' not found. Items are not persisted when `store` is set to false."
NO_OUTPUT = "No tool output found for function call {}."
NO_CALL = "No tool call found for function call output with call_id {}."


class Refused(Exception):
    """Raised to answer the request with a 400 and this message."""


@dataclass
class Responses:
    """The provider: checks each request, then has the model reply.

    Args:
        model: Sees the request in the form of Chat Completions.
        reasons: Whether each reply begins with reasoning.
    """

    model: wire.Model
    reasons: bool = True
    key: str = ""
    """Reasoning is encrypted with this key, and only this key opens it."""
    cache: PromptCache = field(default_factory=PromptCache)
    requests: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    issued: dict[str, tuple[str, dict[str, Any], str, str]] = field(default_factory=dict)
    """By id: the model, the item, and the ids of those before and after that belong to it."""

    def reply(self, request: dict[str, Any]) -> wire.Answer | dict[str, Any]:
        """Return the whole response, or what goes wrong instead."""
        self.requests.append(request)
        try:
            self._check(request)
        except Refused as refused:
            self.refusals.append(str(refused))
            return wire.Failure(400, str(refused))
        answer = wire.answer_wire_request(self.model, as_chat(request))
        if not isinstance(answer, wire.Reply):
            return answer
        output = self._output(request, answer)
        used = self.cache.take(blocks_of(request), request.get("prompt_cache_key") or "")
        written = len(json.dumps(output)) // 4
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(
            answer.finish or ""
        )
        return {
            "id": "resp_" + _digest(request)[:24],
            "object": "response",
            "created_at": 0,
            "model": request["model"],
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "usage": {
                "input_tokens": used["sent"],
                "input_tokens_details": {
                    "cached_tokens": used["read"],
                    "cache_write_tokens": used["written"],
                },
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 8},
                "total_tokens": used["sent"] + written,
            },
        }

    def _output(self, request: dict[str, Any], answer: wire.Reply) -> list[dict[str, Any]]:
        digest = _digest(request)
        output: list[dict[str, Any]] = []
        if self.reasons:
            name = f"rs_{digest[:24]}"
            output.append(
                {
                    "id": name,
                    "type": "reasoning",
                    "summary": [],
                    "encrypted_content": self._sealed(name, request["model"]),
                }
            )
        if answer.content:
            text = {
                "type": "output_text",
                "text": answer.content,
                "annotations": [],
                "logprobs": [],
            }
            output.append(
                {
                    "id": f"msg_{digest[:24]}",
                    "type": "message",
                    "status": "completed",
                    "role": "assistant",
                    "phase": "commentary" if answer.calls else "final_answer",
                    "content": [text],
                }
            )
        output += [
            {
                "id": f"fc_{digest[:20]}_{number}",
                "type": "function_call",
                "status": "completed",
                "call_id": f"call_{digest[:20]}_{number}",
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            }
            for number, (name, arguments) in enumerate(answer.calls)
        ]
        if answer.finish == "length":
            output = output[: 1 + self.reasons]
            output[-1]["status"] = "incomplete"
        for number, item in enumerate(output):
            first = self.reasons and number == 1
            before = output[0]["id"] if first else ""
            after = output[1]["id"] if self.reasons and number == 0 and len(output) > 1 else ""
            self.issued[item["id"]] = request["model"], item, before, after
        return output

    def _sealed(self, name: str, model: str) -> str:
        return "gAAAA" + hashlib.sha256(f"{name} {model} {self.key}".encode()).hexdigest() * 4

    # Refusals

    def _check(self, request: dict[str, Any]) -> None:
        _known("", request, ResponseCreateParamsStreaming)
        for name in NOT_STATELESS:
            if name in request:
                raise Refused(f"Not stateless: '{name}'.")
        if request.get("store") is not False:
            raise Refused("'store' must be false here.")
        if request.get("include") != ["reasoning.encrypted_content"]:
            raise Refused("Reasoning is not asked for as encrypted content.")
        if request.get("temperature") is not None and self.reasons:
            raise Refused("Unsupported parameter: 'temperature' is not supported with this model.")
        if len(request.get("prompt_cache_key") or "") > 64:
            raise Refused("Invalid 'prompt_cache_key': string too long.")
        for number, tool in enumerate(request.get("tools", [])):
            _known(f"tools[{number}].", tool, FunctionToolParam)
            if tool["strict"]:
                _check_strict(tool["name"], tool["parameters"])
        items = request["input"]
        for number, item in enumerate(items):
            self._check_item(request["model"], items, number, item)
        _check_pairs(items)

    def _check_item(
        self, model: str, items: list[dict[str, Any]], number: int, item: dict[str, Any]
    ) -> None:
        kind = item.get("type", "message")
        own = item.get("id")
        shape = ITEMS.get(kind)
        if kind == "message":
            shape = ResponseOutputMessageParam if own else EasyInputMessageParam
        if shape is None:
            raise Refused(f"Invalid value: '{kind}' at input[{number}].type.")
        _known(f"input[{number}].", item, shape)
        for key in ("content", "output"):
            parts = item.get(key)
            for part in parts if isinstance(parts, list) and not own else []:
                _known(f"input[{number}].{key}[0].", part, PARTS[part["type"]])
                if "prompt_cache_breakpoint" in part and item.get("role") == "assistant":
                    raise Refused(f"Unknown parameter: 'input[{number}].{key}[0]…breakpoint'.")
        if own is None:
            if kind == "reasoning":
                raise Refused(f"Missing required parameter: 'input[{number}].id'.")
            return
        if own not in self.issued:
            raise Refused(NOT_STORED.format(own))
        maker, issued, before, after = self.issued[own]
        if kind == "reasoning" and item.get("encrypted_content") != self._sealed(own, model):
            raise Refused(UNREADABLE.format(own))
        if maker != model or item != issued:
            raise Refused(f"Item '{own}' is not as it was.")
        previous = items[number - 1].get("id", "") if number else ""
        following = items[number + 1].get("id", "") if number + 1 < len(items) else ""
        if kind == "reasoning" and (not after or following != after):
            raise Refused(ALONE.format(own))
        if before and previous != before:
            raise Refused(BEREFT.format(own, before))


def events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the response as it is streamed."""
    empty = {**response, "status": "in_progress", "output": [], "usage": None}
    number = 0

    def event(kind: str, **details: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": kind, "sequence_number": number, **details}

    yield event("response.created", response=empty)
    yield event("response.in_progress", response=empty)
    for index, item in enumerate(response["output"]):
        where = {"output_index": index, "item_id": item["id"]}
        begun = {**item, "status": "in_progress"}
        if item["type"] == "reasoning":
            begun["encrypted_content"] = "incomplete"
        yield event("response.output_item.added", output_index=index, item=begun)
        if item["type"] == "function_call":
            text = item["arguments"]
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                yield event("response.function_call_arguments.delta", delta=piece, **where)
            yield event("response.function_call_arguments.done", arguments=text, **where)
        if item["type"] == "message":
            [part] = item["content"]
            yield event("response.output_text.delta", delta=part["text"], content_index=0, **where)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{response['status']}", response=response)


def as_chat(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request in the form of Chat Completions, for a model that knows no other."""
    messages: list[dict[str, Any]] = []
    reply: dict[str, Any] | None = None
    for item in request["input"]:
        kind = item.get("type", "message")
        if kind == "reasoning":
            continue
        if kind == "function_call_output":
            reply = None
            messages.append(
                {"role": "tool", "tool_call_id": item["call_id"], "content": _text(item["output"])}
            )
        elif kind == "function_call":
            if reply is None:
                reply = {"role": "assistant", "content": None}
                messages.append(reply)
            function = {"name": item["name"], "arguments": item["arguments"]}
            reply.setdefault("tool_calls", []).append(
                {"id": item["call_id"], "type": "function", "function": function}
            )
        else:
            message = {"role": item["role"], "content": _text(item["content"])}
            messages.append(message)
            reply = message if item["role"] == "assistant" else None
    tools = [
        {
            "type": "function",
            "function": {k: v for k, v in tool.items() if k not in ("type", "strict")},
        }
        for tool in request.get("tools", [])
    ]
    return {"model": request["model"], "messages": messages} | ({"tools": tools} if tools else {})


def _text(content: Any) -> str:
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def _known(where: str, fields: dict[str, Any], shape: Any) -> None:
    """Refuse fields that the client's type does not have, and the lack of required ones."""
    for name in fields:
        if name not in shape.__annotations__:
            raise Refused(f"Unknown parameter: '{where}{name}'.")
    for name in shape.__required_keys__:
        if name not in fields:
            raise Refused(f"Missing required parameter: '{where}{name}'.")


def _check_pairs(items: list[dict[str, Any]]) -> None:
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    for name in called:
        if name not in answered:
            raise Refused(NO_OUTPUT.format(name))
    for name in answered:
        if name not in called:
            raise Refused(NO_CALL.format(name))


def _check_strict(name: str, schema: dict[str, Any]) -> None:
    """Refuse what strict tools must not contain. A field may have the name of a keyword."""
    if "default" in schema:
        raise Refused(f"Invalid schema for function '{name}': 'default' is not permitted.")
    fields = schema.get("properties", {})
    if schema["type"] == "object" and (
        schema.get("additionalProperties") is not False
        or {*schema.get("required", [])} != {*fields}
    ):
        raise Refused(f"Invalid schema for function '{name}': 'required' must name every property.")
    for part in [*fields.values(), *([schema["items"]] if "items" in schema else [])]:
        _check_strict(name, part)


def _digest(request: dict[str, Any]) -> str:
    """Hash what the model sees, without the job's name, so that two runs get the same ids."""
    content = json.dumps([request["model"], as_chat(request)["messages"]])
    return hashlib.sha256(content.encode()).hexdigest()

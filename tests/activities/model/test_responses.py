"""Whatever the Responses API answers becomes a reply, or a typed failure that says what to do."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from temporalio.exceptions import ApplicationError

from activities.model.client import call_endpoint
from activities.model.reply_message import reply_provider_data
from activities.model.reply_stream import MAX_TEXT, StreamedReply
from config.schema.model_settings import ModelConfig

MODEL = ModelConfig(name="m", api="responses", temperature=None, stall_seconds=1)
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL = {
    "id": "fc_1", "type": "function_call", "call_id": "call_x", "name": "list_files",
    "arguments": "{}", "status": "completed",
}  # fmt: skip
USAGE = {
    "input_tokens": 3000, "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 900},
}  # fmt: skip


def said(text: str, kind: str = "output_text") -> dict[str, Any]:
    part = {"type": kind, "annotations": [], "refusal" if kind == "refusal" else "text": text}
    return {"id": "msg_1", "type": "message", "role": "assistant", "phase": "final_answer",
            "status": "completed", "content": [part]}  # fmt: skip


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m-2026",
            "error": None, "output": list(output), "usage": USAGE, **more}  # fmt: skip


def ended(kind: str, *output: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return the events of a whole reply."""
    done = [{"type": "response.output_item.done", "item": item} for item in output]
    last = {"type": f"response.{kind}", "response": response(*output, status=kind, **more)}
    return [{"type": "response.created", "response": {}}, *done, last]


def client(transport: Any) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url="http://model/v1", api_key="k", max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )  # fmt: skip


async def asked(*events: dict[str, Any], model: ModelConfig = MODEL) -> StreamedReply:
    events_text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    paths: list[str] = []

    def give(request: httpx2.Request) -> httpx2.Response:
        paths.append(request.url.path)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=events_text.encode())

    reply = await call_endpoint(lambda _: client(httpx2.MockTransport(give)), model, b"{}")
    assert paths == ["/v1/responses"]
    return reply


async def test_a_reply_is_put_together_from_its_items() -> None:
    added = {
        "type": "response.output_item.added",
        "item": {**REASONING, "encrypted_content": "incomplete"},
    }
    delta = {"type": "response.function_call_arguments.delta", "delta": "{"}
    reply = await asked(added, delta, *ended("completed", REASONING, said("I look."), CALL))
    assert (reply.text, reply.calls, reply.finish) == (
        "I look.",
        [("list_files", "{}")],
        "tool_calls",
    )
    assert reply.items == [REASONING, said("I look."), CALL]
    assert reply.answered_by == "m-2026"
    used = reply.usage
    assert (used.prompt_tokens, used.completion_tokens) == (3000, 20)
    assert (used.cached_tokens, used.written_tokens) == (2000, 900)


async def test_one_that_comes_whole_is_the_same() -> None:
    whole = httpx2.Response(200, json=response(REASONING, CALL))
    reply = await call_endpoint(
        lambda _: client(httpx2.MockTransport(lambda _: whole)),
        MODEL.model_copy(update={"stream": False}),
        b"{}",
    )
    assert (reply.calls, reply.items) == ([("list_files", "{}")], [REASONING, CALL])


@pytest.mark.parametrize("events", [[], [REASONING], [REASONING, CALL, CALL]])
async def test_the_whole_reply_says_which_items_there_are(events: list[dict[str, Any]]) -> None:
    *_, last = ended("completed", REASONING, CALL)
    done = [{"type": "response.output_item.done", "item": item} for item in events]
    reply = await asked(*done, last)
    assert (reply.calls, reply.items) == ([("list_files", "{}")], [REASONING, CALL])


async def test_items_count_where_the_whole_reply_lists_none() -> None:
    *done, last = ended("completed", REASONING, CALL)
    reply = await asked(*done, {**last, "response": {**last["response"], "output": []}})
    assert reply.items == [REASONING, CALL]


async def test_one_that_was_cancelled_is_no_reply() -> None:
    whole = httpx2.Response(200, json=response(status="cancelled"))
    with pytest.raises(ApplicationError, match="cancelled") as caught:
        await call_endpoint(lambda _: client(httpx2.MockTransport(lambda _: whole)), MODEL, b"{}")
    assert (caught.value.type, caught.value.non_retryable) == ("Endpoint", False)


@pytest.mark.parametrize(
    ("output", "finish"),
    [
        # Cut off: nothing follows its reasoning.
        ([REASONING], "incomplete"),
        ([REASONING, {**CALL, "arguments": '{"pa'}], "incomplete"),
        ([REASONING, {**CALL, "arguments": "[1"}], "completed"),
        ([said("Hm."), REASONING], "completed"),
        ([REASONING, {**CALL, "name": "functions.list_files"}], "completed"),
        ([{**REASONING, "encrypted_content": None}, CALL], "completed"),
        ([REASONING, said(" ")], "completed"),
        # More than is kept, and more than is counted.
        ([REASONING, said("a" * (MAX_TEXT + 1))], "completed"),
        ([REASONING, *[{**CALL, "call_id": str(n)} for n in range(40)]], "completed"),
    ],
)
async def test_what_cannot_go_back_as_it_is_goes_back_in_our_form(
    output: list[dict[str, Any]], finish: str
) -> None:
    details = {"incomplete_details": {"reason": "max_output_tokens"}}
    reply = await asked(*ended(finish, *output, **(details if finish == "incomplete" else {})))
    assert reply.items == []
    assert reply_provider_data(1, reply) is None
    assert reply.finish == ("length" if finish == "incomplete" else reply.finish)


async def test_a_refusal_is_what_the_model_says() -> None:
    reply = await asked(*ended("completed", said("I cannot.", "refusal")))
    assert (reply.text, reply.calls, reply.finish) == ("I cannot.", [], "stop")
    assert reply.is_refusal


def failed(code: str | None, message: str = "no") -> dict[str, Any]:
    error = {"code": code, "message": message}
    return {"type": "response.failed", "response": response(status="failed", error=error)}


@pytest.mark.parametrize(
    ("events", "kind", "words"),
    [
        ([failed("server_error")], "Endpoint", "broke off: no"),
        ([failed("rate_limit_exceeded")], "Endpoint", "broke off"),
        ([failed("invalid_prompt", "not that")], "ModelRefused", "took the reply back: not that"),
        ([failed("bio_policy")], "ModelRefused", "took the reply back"),
        ([failed("context_length_exceeded")], "ContextTooLong", "too long for m"),
        ([failed("insufficient_quota")], "Credentials", "nothing left to spend"),
        ([{"type": "error", "code": None, "message": "odd"}], "Endpoint", "broke off: odd"),
        ([{"type": "response.created", "response": {}}], "Endpoint", "ended before the reply"),
        ([{"type": "response.completed"}], "Endpoint", "is no reply"),
        (
            ended("incomplete", incomplete_details={"reason": "content_filter"}),
            "ModelRefused",
            "content_filter",
        ),
    ],
)
async def test_what_goes_wrong_is_typed(
    events: list[dict[str, Any]], kind: str, words: str
) -> None:
    with pytest.raises(ApplicationError, match=words) as caught:
        await asked(*events)
    assert caught.value.type == kind


class Slow(httpx2.AsyncByteStream):
    """Sends events, followed by silence."""

    def __init__(self, *events: dict[str, Any], silence: float, then: list[dict[str, Any]]) -> None:
        self._events, self._silence, self._then = events, silence, then

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            yield b"data: %b\n\n" % json.dumps(event).encode()
        await asyncio.sleep(self._silence)
        for event in self._then:
            yield b"data: %b\n\n" % json.dumps(event).encode()


def slow(*events: dict[str, Any]) -> AsyncOpenAI:
    stream = Slow(*events, silence=1.3, then=ended("completed", REASONING, CALL))
    headers = {"content-type": "text/event-stream"}
    return client(
        httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, stream=stream))
    )


def _connected(endpoint: AsyncOpenAI, _: ModelConfig) -> AsyncOpenAI:
    return endpoint


async def test_silence_is_a_stall_but_while_it_thinks() -> None:
    created = {"type": "response.created", "response": {}}
    thinks = {"type": "response.output_item.added", "item": {"type": "reasoning"}}
    tells = {"type": "response.reasoning_summary_part.done", "part": {}}
    for endpoint in (slow(created, thinks), slow(created, thinks, tells)):
        reply = await call_endpoint(partial(_connected, endpoint), MODEL, b"{}")
        assert reply.calls == [("list_files", "{}")]
    speaks = {"type": "response.output_text.delta", "delta": "I"}
    with pytest.raises(ApplicationError, match="said nothing for 1 s"):
        await call_endpoint(lambda _: slow(created, thinks, speaks), MODEL, b"{}")

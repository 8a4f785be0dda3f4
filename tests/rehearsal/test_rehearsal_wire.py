"""The protocol of the rehearsal server, as the product's own client reads it."""

import json
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from rehearsal import (
    Answer,
    Cut,
    Failure,
    Hang,
    Model,
    RehearsalTransport,
    Reply,
    Request,
    Stall,
    call,
)

MESSAGES: Any = [{"role": "user", "content": "hello"}]
MIXED = Reply(
    content="Two calls — with äöü.",
    calls=[("write_file", {"path": "a.md", "content": "x" * 5000}), ("list_files", {})],
)


def client(model: Model, patience: float = 5.0) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url="http://rehearsal/v1",
        api_key="rehearsal",
        max_retries=0,
        timeout=patience,
        http_client=httpx2.AsyncClient(transport=RehearsalTransport(model)),
    )


def always(answer: Answer) -> Model:
    return lambda request: answer


async def streamed(model: Model, patience: float = 5.0) -> dict[str, Any]:
    """Return content, calls, finish reason and usage, assembled from a stream's chunks."""
    calls: dict[int, dict[str, str]] = {}
    text, finish, usage, chunks = "", None, None, 0
    stream = await client(model, patience).chat.completions.create(
        model="m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    async for chunk in stream:
        chunks += 1
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or []:
                tool_call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                tool_call["id"] += part.id or ""
                tool_call["name"] += (part.function and part.function.name) or ""
                tool_call["arguments"] += (part.function and part.function.arguments) or ""
    return {"text": text, "calls": calls, "finish": finish, "usage": usage, "chunks": chunks}


async def test_a_stream_gives_the_reply_in_pieces() -> None:
    reply = await streamed(always(MIXED))
    assert reply["text"] == MIXED.content
    assert reply["finish"] == "tool_calls"
    assert [tool_call["name"] for tool_call in reply["calls"].values()] == [
        "write_file",
        "list_files",
    ]
    assert json.loads(reply["calls"][0]["arguments"])["content"] == "x" * 5000
    assert reply["calls"][0]["id"] != reply["calls"][1]["id"]
    assert reply["chunks"] > 6
    assert reply["usage"].completion_tokens > 1000
    assert reply["usage"].prompt_tokens_details.cached_tokens == 0


async def test_without_streaming_the_reply_is_one_completion() -> None:
    reply = await client(always(MIXED)).chat.completions.create(model="m", messages=MESSAGES)
    calls = reply.choices[0].message.tool_calls or []
    assert reply.choices[0].message.content == MIXED.content
    assert [tool_call.function.name for tool_call in calls if tool_call.type == "function"] == [
        "write_file",
        "list_files",
    ]
    assert reply.usage
    assert reply.usage.prompt_tokens > 0


async def test_the_same_request_gives_the_same_answer() -> None:
    model = always(call("list_files"))
    assert await streamed(model) == await streamed(model)


async def test_text_alone_finishes_with_stop_and_the_finish_can_be_set() -> None:
    assert (await streamed(always(Reply("done"))))["finish"] == "stop"
    assert (await streamed(always(Reply("done", finish="length"))))["finish"] == "length"
    assert (await streamed(always(Reply())))["text"] == ""


async def test_raw_arguments_go_out_as_they_are() -> None:
    reply = await streamed(always(Reply(calls=[("write_file", '{"path": ')])))
    assert reply["calls"][0]["arguments"] == '{"path": '


async def test_failures_become_the_clients_errors() -> None:
    limited = Failure(429, "slow down", code="rate_limit_exceeded", headers={"retry-after": "7"})
    with pytest.raises(openai.RateLimitError) as limit:
        await streamed(always(limited))
    assert limit.value.code == "rate_limit_exceeded"
    assert limit.value.response.headers["retry-after"] == "7"
    with pytest.raises(openai.BadRequestError, match="too long"):
        await streamed(always(Failure(400, "too long", code="context_length_exceeded")))


async def test_an_exception_of_the_model_is_no_lost_connection() -> None:
    def broken(request: Request) -> Answer:
        raise KeyError("nothing")

    with pytest.raises(openai.BadRequestError, match="KeyError"):
        await streamed(broken)


async def test_a_cut_stream_is_a_broken_connection() -> None:
    with pytest.raises(openai.APIConnectionError):
        await streamed(always(Cut(MIXED)))


@pytest.mark.parametrize("answer", [Hang(), Stall(MIXED)])
async def test_silence_ends_with_the_clients_time_out(answer: Answer) -> None:
    with pytest.raises(openai.APITimeoutError):
        await streamed(always(answer), patience=0.1)


async def test_a_stall_that_ends_gives_the_whole_reply() -> None:
    assert (await streamed(always(Stall(MIXED, seconds=0.02))))["text"] == MIXED.content


async def test_models_are_listed_and_other_paths_are_not_found() -> None:
    assert [model.id async for model in client(always(MIXED)).models.list()] == ["rehearsal"]
    with pytest.raises(openai.NotFoundError):
        await client(always(MIXED)).embeddings.create(model="m", input="x")

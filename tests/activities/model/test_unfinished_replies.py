"""What a reply that breaks off has used is estimated; what was never begun is not counted."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from temporalio.exceptions import ApplicationError

from activities.job.result_cache import ResultCache
from activities.model.client import UnfinishedReplies, call_endpoint
from config.schema.model_settings import ModelConfig
from protocol.usage import Usage

BODY = json.dumps({"messages": [{"role": "user", "content": "x" * 400}]}).encode()
ASKED = len(BODY) // 4
WORDS = "word " * 80
SPOKEN = {"choices": [{"index": 0, "delta": {"content": WORDS}}]}
THOUGHT = {"choices": [{"index": 0, "delta": {"reasoning_content": WORDS}}]}
FILTERED = {
    "choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}
DELTA = {"type": "response.output_text.delta", "delta": WORDS}
BROKEN = {"error": {"message": "overloaded"}}


class Broken(httpx2.AsyncByteStream):
    def __init__(self, *events: dict[str, Any]) -> None:
        self.events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self.events:
            yield b"data: %b\n\n" % json.dumps(event).encode()
        raise httpx2.RemoteProtocolError("peer closed connection")


async def ask(answer: httpx2.Response | Exception, api: Any, unfinished: Usage) -> None:
    def give(_: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(give))
    client = AsyncOpenAI(base_url="http://m/v1", api_key="k", max_retries=0, http_client=http)
    async with client:
        await call_endpoint(lambda _: client, ModelConfig(name="m", api=api), BODY, unfinished)


async def used(answer: httpx2.Response | Exception, api: Any = "chat") -> Usage:
    unfinished = Usage()
    with pytest.raises(ApplicationError):
        await ask(answer, api, unfinished)
    return unfinished


def broken(*events: dict[str, Any]) -> httpx2.Response:
    headers = {"content-type": "text/event-stream"}
    return httpx2.Response(200, headers=headers, stream=Broken(*events))


@pytest.mark.parametrize(
    ("answer", "api", "received"),
    [
        (broken(), "chat", 0),
        (broken(SPOKEN, SPOKEN), "chat", 200),
        (broken(SPOKEN, THOUGHT, BROKEN), "chat", 200),
        (broken(DELTA), "responses", 100),
        (httpx2.ReadTimeout("late"), "chat", 0),
    ],
)
async def test_the_request_and_what_came_are_counted(
    answer: httpx2.Response | Exception, api: str, received: int
) -> None:
    usage = await used(answer, api)
    assert (usage.prompt_tokens, usage.completion_tokens) == (ASKED, received)
    assert (usage.unfinished_tokens, usage.model_calls) == (ASKED + received, 0)


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.ConnectTimeout("late"),
        httpx2.ConnectError("refused"),
        httpx2.Response(503, json=BROKEN),
        broken(BROKEN),
        httpx2.Response(200, json={"choices": []}),
    ],
)
async def test_an_error_in_place_of_a_reply_is_not_counted(
    answer: httpx2.Response | Exception,
) -> None:
    assert await used(answer) == Usage()


async def test_a_reply_that_is_taken_back_counts_as_the_endpoint_says() -> None:
    content = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(FILTERED).encode()
    headers = {"content-type": "text/event-stream"}
    usage = await used(httpx2.Response(200, headers=headers, content=content))
    assert usage == Usage(prompt_tokens=7, completion_tokens=3)


async def test_a_reply_that_is_given_up_counts_as_one_that_breaks_off() -> None:
    begun = asyncio.Event()

    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"data: %b\n\n" % json.dumps(SPOKEN).encode()
            begun.set()
            await asyncio.Event().wait()

    headers = {"content-type": "text/event-stream"}
    unfinished = Usage()
    asking = asyncio.create_task(
        ask(httpx2.Response(200, headers=headers, stream=Endless()), "chat", unfinished)
    )
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert unfinished.unfinished_tokens == ASKED + 100


def test_attempts_add_up_by_model(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    for _ in range(2):
        UnfinishedReplies(cache, "k").add("m", Usage(prompt_tokens=5, unfinished_tokens=5))
    later = UnfinishedReplies(cache, "k")
    later.add("n", Usage(completion_tokens=1, unfinished_tokens=1))
    later.add("n", Usage())
    assert {name: usage.unfinished_tokens for name, usage in later.by_model.items()} == {
        "m": 10, "n": 1
    }  # fmt: skip
    assert later.total.unfinished_tokens == 11
    assert UnfinishedReplies(cache, "other").by_model == {}

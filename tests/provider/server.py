"""The strict provider behind a client: within the process, or on a port of this machine."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

from rehearsal import wire
from rehearsal.rehearsal_transport import EVENTS, JSON
from tests.http_server import Handler, served
from tests.provider.cache import PromptCache, blocks_of
from tests.provider.strict import Responses, events

ELSEWHERE = (
    "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. "
    "Please use /v1/responses instead."
)


@dataclass
class Provider:
    """Answers both paths: the Responses API strictly, and chat for the models that have it.

    Args:
        responses: The one API.
        chat: Names of models that answer chat completions with tools.
        cache: What is computed of their prompts; None: the usage is the rehearsal's estimate.
    """

    responses: Responses
    chat: frozenset[str] = frozenset()
    cache: PromptCache | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and model of each request."""
    chats: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        request = json.loads(body)
        self.asked.append((path.rpartition("/v1/")[2], request["model"]))
        if path.endswith("/responses"):
            return self._responses(request)
        incoming = wire.parse_wire_request(body)
        assert isinstance(incoming, wire.WireRequest)
        if request["model"] not in self.chat:
            return _failed(wire.Failure(400, ELSEWHERE.format(request["model"])))
        self.chats.append(request)
        answer = wire.answer_wire_request(self.responses.model, _unmarked(incoming.request))
        if not isinstance(answer, wire.Reply):
            return _failed(answer)
        content = b"".join(wire.stream_wire_reply(incoming, answer))
        if self.cache:
            content = content.replace(
                b"data: [DONE]", b"data: " + self._usage(request) + b"\n\ndata: [DONE]"
            )
        return 200, EVENTS, content

    def _usage(self, request: dict[str, Any]) -> bytes:
        assert self.cache
        used = self.cache.take(blocks_of(request), "")
        details = {"cached_tokens": used["read"], "cache_write_tokens": used["written"]}
        usage = {
            "prompt_tokens": used["sent"], "completion_tokens": 8, "prompt_tokens_details": details
        }  # fmt: skip
        return json.dumps({"choices": [], "usage": usage}).encode()

    def _responses(self, request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        response = self.responses.reply(request)
        if not isinstance(response, dict):
            return _failed(response)
        if not request.get("stream"):
            return 200, JSON, json.dumps(response).encode()
        content = "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(response)
        )
        return 200, EVENTS, content.encode()


class ProviderTransport(httpx2.AsyncBaseTransport):
    """The provider within this process."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status, headers, content = self._provider.answer(request.url.path, await request.aread())
        return httpx2.Response(status, headers=headers, content=content)


@dataclass
class ProviderServer:
    """The provider behind a port of this machine, as a context manager.

    Args:
        provider: What answers; called from one thread a connection.
        delay: Seconds before each answer.
    """

    provider: Provider
    delay: float = 0.0

    def __post_init__(self) -> None:
        server = self

        class Answers(Handler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                status, headers, content = server.provider.answer(self.path, self.body())
                time.sleep(server.delay)
                # The client was a worker that was killed meanwhile.
                with suppress(ConnectionError):
                    self.give(content, headers["content-type"], status)

        self._serving = ExitStack()
        self._address = self._serving.enter_context(served(Answers))

    @property
    def base_url(self) -> str:
        return f"{self._address}/v1"

    def __enter__(self) -> ProviderServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.close()


def _unmarked(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with plain texts in place of parts, as our models read it."""
    messages = [
        {**message, "content": "".join(part.get("text", "") for part in message["content"])}
        if isinstance(message.get("content"), list)
        else message
        for message in request["messages"]
    ]
    return {**request, "messages": messages}


def _failed(answer: Any) -> tuple[int, dict[str, str], bytes]:
    assert isinstance(answer, wire.Failure), answer
    return answer.status, JSON | answer.headers, answer.body

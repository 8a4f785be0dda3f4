"""Reasoning is sent back over chat completions where the endpoint wants it: learned both ways."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from rehearsal import Reply, wire
from rehearsal.rehearsal_transport import EVENTS, JSON
from rehearsal.request_view import RequestView
from tests.workflows.deviating import Deviating
from tests.workflows.serving import serving
from tests.workflows.short import Call, Short, job

DEMAND = "The `reasoning_content` in the thinking mode must be passed back to the API."
UNKNOWN = "Unknown parameter: 'messages[2].reasoning_content'."
Fields = dict[str, Any]


@dataclass
class Thinking(httpx2.AsyncBaseTransport):
    """A provider whose model thinks before it replies.

    Args:
        model: What replies.
        name: Of the field that is streamed beside the reply.
        demands: Whether each reply of a request must have that field; None: it must not.
    """

    model: wire.Model
    name: str
    demands: bool | None = True
    given: dict[str, list[Fields]] = field(default_factory=dict)
    """The fields sent with the replies with these calls or text."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        incoming = wire.parse_wire_request(await request.aread())
        assert isinstance(incoming, wire.WireRequest)
        self.requests.append(incoming.request)
        if problem := self._problem(incoming.request["messages"]):
            self.refused += 1
            return httpx2.Response(400, headers=JSON, content=wire.Failure(400, problem).body)
        answer = wire.answer_wire_request(self.model, incoming.request)
        assert isinstance(answer, wire.Reply), answer
        pieces, whole = self._thoughts(len(self.requests))
        key = _key(answer.content, [arguments for _, arguments in answer.calls])
        self.given.setdefault(key, []).append(whole)
        first = [_event({"delta": piece}) for piece in pieces]
        content = b"".join([*first, *wire.stream_wire_reply(incoming, answer)])
        return httpx2.Response(200, headers=EVENTS, content=content)

    def _thoughts(self, number: int) -> tuple[list[Fields], Fields]:
        """Return the pieces of a stream, and their sum; sometimes empty."""
        text = f"I think {number}." if number % 2 else ""
        if self.name == "reasoning_content":
            return [{self.name: text[:4]}, {self.name: text[4:]}], {self.name: text}
        base = {"type": "reasoning.text", "index": 0, "format": "x"}
        signature = f"c2ln{number}"
        whole = [{**base, "text": text, "signature": signature}]
        pieces = [{**base, "text": text[:4]}, {**base, "text": text[4:], "signature": signature}]
        return [{self.name: [piece]} for piece in pieces], {self.name: whole}

    def _problem(self, messages: list[dict[str, Any]]) -> str:
        for message in messages:
            if message["role"] != "assistant":
                continue
            if self.demands is None:
                if self.name in message:
                    return UNKNOWN
            elif self.name not in message:
                return DEMAND if self.demands else ""
            else:
                calls = [call["function"]["arguments"] for call in message.get("tool_calls", [])]
                mine = [one[self.name] for one in self.given[_key(message["content"], calls)]]
                assert message[self.name] in mine, message
        return ""


def _key(content: str | None, calls: list[Any]) -> str:
    """Return the key of a reply: its text and calls."""
    raw = [json.loads(one) if isinstance(one, str) else one for one in calls]
    return hashlib.sha256(json.dumps([content, raw]).encode()).hexdigest()


def _event(choice: Fields) -> bytes:
    return b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, **choice}]}).encode()


def of(name: str, address: str = "http://model/v1", **more: Any) -> dict[str, Any]:
    return {"model.name": name, "model.base_url": address, "model.temperature": None, **more}


def numbered() -> Short:
    """Return a job whose replies differ."""
    return Short({"Work": _work})


def _work(view: RequestView) -> list[Call]:
    write: Call = ("write_file", {"path": "output/tea.md", "content": f"{view.replies} cups"})
    done: Call = ("todo_complete", {"notes": f"made {view.replies}"})
    return [write, done] if view.replies >= 2 else [write]


async def test_it_is_sent_back_once_it_was_demanded(temporal: Client, root: Root) -> None:
    thinking = Thinking(numbered(), "reasoning_content")
    async with serving(temporal, root, thinking) as jobs:
        result = await jobs.result(await jobs.start(job(set=of("thinks-demanding"))))
    assert result["status"] == "completed"
    assert thinking.refused == 1


async def test_it_is_left_out_once_it_was_refused(temporal: Client, root: Root) -> None:
    thinking = Thinking(numbered(), "reasoning_content", demands=None)
    settings = {**of("thinks-refusing"), "model.send_reasoning": True}
    async with serving(temporal, root, thinking) as jobs:
        result = await jobs.result(await jobs.start(job(set=settings)))
    assert result["status"] == "completed"
    assert thinking.refused == 1


@pytest.mark.parametrize(
    ("address", "forced"), [("https://openrouter.ai/api/v1", False), ("http://model/v1", True)]
)
async def test_what_is_signed_goes_back_unasked_and_no_call_is_forced_that_would_cost_it(
    temporal: Client, root: Root, address: str, forced: bool
) -> None:
    talk = {3: Reply("I made tea."), 4: Reply("I made more tea."), 5: Reply("It is made.")}
    thinking = Thinking(Deviating(dict(talk), numbered()), "reasoning_details")
    async with serving(temporal, root, thinking) as jobs:
        start = job(set=of(f"thinks-signing-{forced}", address))
        result = await jobs.result(await jobs.start(start))
    assert result["status"] == "completed"
    assert thinking.refused == 0
    replies = [
        message
        for request in thinking.requests
        for message in request["messages"]
        if message["role"] == "assistant"
    ]
    assert all("reasoning_details" in message for message in replies)
    assert any("tool_choice" in request for request in thinking.requests) is forced

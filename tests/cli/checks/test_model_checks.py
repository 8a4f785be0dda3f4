"""`doctor --model`: checks what jobs need, on endpoints that misbehave in each way."""

import json
from typing import Any, ClassVar

import pytest

from cli.checks.check_result import CheckResult
from cli.checks.model_checks import check_model
from config.schema.model_settings import ModelConfig
from rehearsal import Answer, Reply, Request, wire
from tests.http_server import Handler, served
from tests.provider.server import Provider, ProviderServer
from tests.provider.strict import Responses

TWO: list[tuple[str, wire.Arguments]] = [
    ("read_file", {"path": "maple.md"}),
    ("read_file", {"path": "birch.md"}),
]
THOUGHT = {"choices": [{"index": 0, "delta": {"reasoning_content": "Two files, two calls."}}]}


class Endpoint(Handler):
    """Behaves correctly; its subclasses do not."""

    first: ClassVar[Reply] = Reply(calls=TWO)
    second: ClassVar[Reply] = Reply("maple, birch")

    def do_POST(self) -> None:
        incoming = wire.parse_wire_request(self.body())
        assert isinstance(incoming, wire.WireRequest)
        request = incoming.request
        if why := self.refusal(request):
            self.give_json({"error": {"message": why}}, 400)
            return
        answer = self.first if len(request["messages"]) == 2 else self.second
        self.give(b"".join(self.events(incoming, answer)), "text/event-stream")

    def refusal(self, request: dict[str, Any]) -> str:
        return ""

    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        return wire.stream_wire_reply(incoming, answer)

    @staticmethod
    def without(events: list[bytes], *words: bytes) -> list[bytes]:
        return [event for event in events if not any(word in event for word in words)]


class OnlyText(Endpoint):
    first = Reply('<tool_call>{"name": "read_file"}</tool_call>')


class OneCall(Endpoint):
    first = Reply(calls=TWO[:1])


class Broken(Endpoint):
    first = Reply(calls=[("read_file", '{"path": maple.md}')])


class Thinking(Endpoint):
    """Its model reasons, but ignores reasoning that is sent back."""

    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        return [
            b"data: %b\n\n" % json.dumps(THOUGHT).encode(),
            *wire.stream_wire_reply(incoming, answer),
        ]

    def has_reasoning(self, request: dict[str, Any]) -> bool:
        return any("reasoning_content" in message for message in request["messages"])


class WantsReasoning(Thinking):
    def refusal(self, request: dict[str, Any]) -> str:
        lacking = len(request["messages"]) > 2 and not self.has_reasoning(request)
        return "reasoning_content must be passed back" if lacking else ""


class WantsNoReasoning(Thinking):
    def refusal(self, request: dict[str, Any]) -> str:
        return "reasoning_content: unknown field" if self.has_reasoning(request) else ""


class NoResults(Thinking):
    def refusal(self, request: dict[str, Any]) -> str:
        return "role tool is unknown" if len(request["messages"]) > 2 else ""


class NoEffort(Endpoint):
    def refusal(self, request: dict[str, Any]) -> str:
        unknown = "Unrecognized request argument supplied: reasoning_effort"
        return unknown if "reasoning_effort" in request else ""


class NoMinimum(Endpoint):
    """Makes a grammar of the schemas, and does not know one of their keywords."""

    def refusal(self, request: dict[str, Any]) -> str:
        is_sent = '"minimum"' in json.dumps(request["tools"])
        return "JSON schema conversion failed: unsupported keyword 'minimum'" if is_sent else ""


class NoPieces(Endpoint):
    def refusal(self, request: dict[str, Any]) -> str:
        return "" if request.get("stream") else "only streams are served"


class NoCounts(Endpoint):
    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        return self.without(wire.stream_wire_reply(incoming, answer), b'"usage"')


class NoReason(Endpoint):
    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        return self.without(wire.stream_wire_reply(incoming, answer), b'"finish_reason":"')


class NoEnd(NoReason):
    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        return self.without(super().events(incoming, answer), b"[DONE]")


class NoEndAtAll(NoEnd):
    """Does not even count, so that nothing says whether a text is whole."""

    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        return self.without(super().events(incoming, answer), b'"usage"')


class NoCache(Endpoint):
    def events(self, incoming: wire.WireRequest, answer: Reply) -> list[bytes]:
        events = wire.stream_wire_reply(incoming, answer)
        return [event.replace(b'"cached_tokens"', b'"other"') for event in events]


class Short(Endpoint):
    second = Reply("maple, bir", finish="length")


async def checks(endpoint: type[Endpoint], **settings: Any) -> dict[str, CheckResult]:
    with served(endpoint) as address:
        model = ModelConfig(name="m", base_url=f"{address}/v1", **settings)
        return {check.name: check async for check in check_model(model)}


async def test_all_that_works_is_said_in_a_line_each() -> None:
    results = await checks(Endpoint, reasoning_effort="high")
    assert all(check.ok for check in results.values())
    assert [check.as_line().partition(":")[0] for check in results.values()] == [
        f"✓ {name}"
        for name in ("request", "tool schemas", "tools", "parallel calls", "in one piece",
                     "reasoning", "cache", "usage", "finish reasons")
    ]  # fmt: skip
    assert results["request"].found == "model m, effort high, Chat Completions: taken as it is"
    assert results["parallel calls"].found == "2 in one reply"
    assert "tokens read at the second turn" in results["cache"].found
    assert results["finish reasons"].found == "tool_calls, stop"


@pytest.mark.parametrize(
    ("endpoint", "settings", "name", "fine", "expected"),
    [
        (OnlyText, {}, "tools", False, "called none; it said: <tool_call>"),
        (Broken, {}, "tools", False, "no call could be read; the first was: read_file"),
        (OneCall, {}, "parallel calls", True, "one call a reply"),
        (Thinking, {}, "reasoning", True, "21 characters; the second turn was taken without"),
        (Thinking, {"send_reasoning": True}, "reasoning", True, "was taken when it was handed"),
        (WantsReasoning, {}, "reasoning", True, "the endpoint wants it back and gets it"),
        (WantsReasoning, {"send_reasoning": True}, "reasoning", True, "was taken when"),
        (WantsNoReasoning, {"send_reasoning": True}, "reasoning", True, "takes none back and gets"),
        (NoResults, {}, "second turn", False, "results of tools are refused"),
        (NoEffort, {"reasoning_effort": "low"}, "request", True, "otherwise: reasoning_effort"),
        (NoCounts, {}, "usage", True, "not counted by the endpoint"),
        (NoReason, {}, "finish reasons", True, "none; [DONE] ends the replies"),
        (NoEnd, {}, "finish reasons", True, "none;"),
        (NoEndAtAll, {}, "second turn", False, "neither a finish_reason nor [DONE]"),
        (NoMinimum, {}, "tool schemas", True, "takes no minimum, which are left out"),
        (NoPieces, {}, "in one piece", True, "not answered, so keep model.stream"),
        (NoCache, {}, "cache", True, "was read at the second turn"),
        (Short, {}, "finish reasons", False, "1 of 2 replies were cut"),
    ],
)
async def test_what_does_not_work_is_told_with_what_helps(
    endpoint: type[Endpoint], settings: dict[str, Any], name: str, fine: bool, expected: str
) -> None:
    check = (await checks(endpoint, **settings))[name]
    assert check.ok is fine
    assert expected in check.found
    assert fine or check.remedy


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        # The text of the first refusal moves it there.
        ("gpt-6", {}, "Responses API, to which it was referred: taken as it is"),
        ("gpt-6", {"api": "responses"}, "model gpt-6, Responses API: taken as it is"),
        ("chatty", {}, "model chatty, Chat Completions: taken as it is"),
    ],
)
async def test_a_strict_provider_of_both_apis(
    name: str, settings: dict[str, Any], expected: str
) -> None:
    def model(request: Request) -> Answer:
        return Reply(calls=TWO) if len(request["messages"]) == 2 else Reply("maple, birch")

    provider = Provider(Responses(model), chat=frozenset({"chatty"}))
    with ProviderServer(provider) as server:
        model_config = ModelConfig(
            name=name, base_url=server.base_url, temperature=None, **settings
        )
        results = {check.name: check async for check in check_model(model_config)}
    assert all(check.ok for check in results.values())
    assert expected in results["request"].found
    # This provider only streams, which jobs ask for.
    assert provider.responses.refusals in ([], ["Missing required parameter: 'stream'."])
    if name == "gpt-6":
        assert results["reasoning"].found.startswith("encrypted, and was taken")
        assert "tokens read at the second turn" in results["cache"].found


async def test_what_helps_is_named() -> None:
    assert "tool-call parser" in (await checks(OnlyText))["tools"].remedy


def test_the_command_asks_the_model_that_the_environment_names(offline, monkeypatch):
    assert "no endpoint is configured" in offline("doctor", "--model").out
    with served(OnlyText) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("LONGHAUL_MODEL", "some")
        ran = offline("doctor", "--model")
        assert ran.code == 1
        assert "✓ request: model some" in ran.out
        assert "✗ tools: the reply called none" in ran.out
        results = json.loads(offline("doctor", "--model", "--json").out)
        names = [check["name"] for check in results]
        assert names[:3] == ["request", "tool schemas", "tools"]
        assert "'nobody' is not known" in offline("doctor", "--model", "--agent", "nobody").out

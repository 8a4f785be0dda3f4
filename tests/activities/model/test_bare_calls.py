"""What small models write in place of a call, and what is kept of what they write without end."""

import json
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from activities.model.client import call_endpoint
from activities.model.dialect import Dialect
from activities.model.prompt import conversation_prompt_body
from activities.model.reply_message import MAX_CUT_TEXT, reply_message
from activities.model.reply_stream import StreamedReply
from activities.text.tokens import count_tokens
from activities.tool_catalogue import REGISTRY
from activities.toolkit.tool_errors import ToolError
from activities.toolkit.tool_offer import offer_tools
from config.agent_files import load_agent
from config.schema.model_settings import ModelConfig
from protocol.usage import Usage

CALL = {"name": "read_file", "arguments": {"path": "a.md"}}
BODY = json.dumps({"messages": [], "tools": [REGISTRY["read_file"].schema]}).encode()


async def reply_to(text: str, **settings: Any) -> StreamedReply:
    message = {"role": "assistant", "content": text}
    answer = {"choices": [{"message": message, "finish_reason": "stop"}]}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer))
    client = AsyncOpenAI(
        base_url="http://model/v1", api_key="k", max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )  # fmt: skip
    model = ModelConfig.model_validate({"name": "m", "bare_calls": True, **settings})
    return await call_endpoint(lambda _: client, model, BODY)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CALL),
        f"\n{json.dumps(CALL, indent=2)}\n",
        f"```json\n{json.dumps(CALL)}\n```",
        f"```\n{json.dumps(CALL)}\n```",
        f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>",
        json.dumps({"name": "read_file", "parameters": {"path": "a.md"}}),
        json.dumps({"type": "function", "function": CALL}),
    ],
)
async def test_a_text_that_is_one_call_is_taken_as_it(text: str) -> None:
    reply = await reply_to(text)
    assert reply.text == ""
    assert [(name, json.loads(raw)) for name, raw in reply.calls] == [
        ("read_file", {"path": "a.md"})
    ]
    plain = await reply_to(text, bare_calls=False)
    assert (plain.text, plain.calls) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        f"I would call {json.dumps(CALL)}",
        f"{json.dumps(CALL)}\n{json.dumps(CALL)}",
        json.dumps([CALL]),
        json.dumps({**CALL, "name": "delete_file"}),
        json.dumps({**CALL, "arguments": {"file": "a.md"}}),
        json.dumps({**CALL, "arguments": {"path": 3}}),
        json.dumps({**CALL, "arguments": "a.md"}),
        json.dumps({"name": "read_file"}),
        '{"name": "read_file", "arguments": {"path": "a.md"',
        "{}",
        "",
    ],
)
async def test_another_text_is_a_text(text: str) -> None:
    reply = await reply_to(text)
    assert (reply.text, reply.calls) == (text, [])


def test_a_text_that_ran_on_is_kept_short() -> None:
    def stored(text: str, finish: str) -> str:
        reply = StreamedReply(text=text, calls=[], finish=finish, usage=Usage())
        return str(reply_message(1, reply)["content"])

    assert stored("═" * 9_000, "stop") == "═" * 9_000
    assert stored("short", "length") == "short"
    cut = stored("═" * 9_000, "length")
    assert cut.startswith("═" * MAX_CUT_TEXT + " [the rest")
    assert len(cut) < MAX_CUT_TEXT + 100


def test_the_advice_after_a_cut_call_is_that_tools_own() -> None:
    cut = json.dumps({"arguments_cut_short": "{"})
    for name, advice in (("write_file", "append_file"), ("read_file", "Say less in one call")):
        with pytest.raises(ToolError, match=advice):
            REGISTRY[name].parse(cut)


def test_one_call_a_reply_is_asked_for_where_it_is_taken() -> None:
    class Nothing:
        def wire_bytes(self, *_: Any) -> list[bytes]:
            return []

        def cache_points(self) -> list[int]:
            return []

    conversation: Any = Nothing()
    model = ModelConfig(name="m", parallel_calls=False, api="chat")
    tools = [REGISTRY["read_file"]]
    sent = json.loads(conversation_prompt_body(model, tools, conversation))
    assert sent["parallel_tool_calls"] is False
    learned = Dialect().adjust_to_refusal("Unknown parameter: 'parallel_tool_calls'.", model)
    assert learned is not None
    again = conversation_prompt_body(learned.adapt_settings(model), tools, conversation)
    assert "parallel_tool_calls" not in json.loads(again)


@pytest.mark.parametrize("kind", ["strategic", "tactical"])
def test_the_fixed_part_of_the_small_agent_is_small(kind: Any) -> None:
    config = load_agent("small")
    schemas = [tool.schema for tool in offer_tools(config, kind).offered]
    system = config.templates[kind]
    assert count_tokens(json.dumps(schemas, ensure_ascii=False)) + count_tokens(system) <= 700
    assert config.model.bare_calls
    assert not config.reflection

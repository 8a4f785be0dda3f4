"""What is learned from a refusal, in the words of those who refuse."""

import json
from typing import Any

import pytest

from activities.model.dialect import Dialect
from activities.model.endpoint_wordings import (
    COUNTS,
    EFFORT,
    IDS,
    KEY,
    LIMIT,
    MARKS,
    NULL,
    REASONING,
    STALE,
    STREAM,
    TEMPERATURE,
    TURNS,
)
from activities.model.prompt import simple_prompt_body
from activities.redaction.credentials import encode_without_credentials
from config.schema.model_settings import ModelConfig

MODEL = ModelConfig(name="m", reasoning_effort="high", cache_marks="breakpoint")
WRONG = "Unsupported value: 'reasoning_effort' does not support 'high' with this model."
"""A person's choice is not dropped while the model has alternatives."""
ASKED = {"role": "user", "content": "Make tea."}
CALLS = {"role": "assistant", "content": None, "tool_calls": [{"id": "s1c0"}, {"id": "s1c1"}]}
RESULTS = [{"role": "tool", "tool_call_id": f"s1c{n}", "content": "hot"} for n in range(2)]
TALK = {"role": "assistant", "content": "It is hot."}


@pytest.mark.parametrize(
    ("refusal", "part"),
    [
        ("Unrecognized request argument supplied: stream_options", COUNTS),
        ("Unrecognized request argument supplied: max_completion_tokens", LIMIT),
        (
            "{'type': 'extra_forbidden', 'loc': ['body', 'max_completion_tokens'], "
            "'msg': 'Extra inputs are not permitted', 'input': 8000}",
            LIMIT,
        ),
        ("'temperature' does not support 0 with this model.", TEMPERATURE),
        ("Unrecognized request argument supplied: reasoning_effort", EFFORT),
        ("[{'type': 'extra_forbidden', 'loc': ['body', 'reasoning_effort'], 'msg': '…'}]", EFFORT),
        ("Model m does not support parameter reasoningEffort.", EFFORT),
        ("messages[2].content: invalid type: null, expected a string", NULL),
        ("Type mismatch of '/messages/2/content', 'string' not in 'null'", NULL),
        ("Your organization must be verified to stream this model.", STREAM),
        ("Unexpected role 'user' after role 'tool'", TURNS),
        ("After the optional system message, conversation roles must alternate", TURNS),
        ("Unrecognized request argument supplied: prompt_cache_key", KEY),
        ("Unknown parameter: 'messages[0].content[0].prompt_cache_breakpoint'.", MARKS),
        ("messages.0.content.0.cache_control: Extra inputs are not permitted", MARKS),
        ("Unknown parameter: 'messages[2].reasoning_content'.", REASONING),
        ("property 'reasoning_details' is unsupported", REASONING),
        ("The encrypted content for item rs_1 could not be verified.", STALE),
        (
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            STALE,
        ),
        ("Item with id 'rs_1' not found. Items are not persisted when `store` is false.", STALE),
        ("messages.3.content.0: Invalid `signature` in `thinking` block", STALE),
        ("Tool call id was s1c0 but must be a-z, A-Z, 0-9, with a length of 9.", IDS),
    ],
)
def test_a_part_that_is_named_is_left_out(refusal: str, part: str) -> None:
    learned = Dialect().adjust_to_refusal(f"Error code: 400 - {refusal}", MODEL)
    assert learned == Dialect(frozenset({part}))
    assert learned is not None
    assert learned.adjust_to_refusal(refusal, learned.adapt_settings(MODEL)) is None


@pytest.mark.parametrize(
    "refusal",
    [
        "Function tools with reasoning_effort are not supported for gpt-5.4 in "
        "/v1/chat/completions. Please use /v1/responses instead.",
        "This model is only supported in v1/responses and not in v1/chat/completions.",
        'model "gpt-5.4" is not accessible via the /chat/completions endpoint',
    ],
)
def test_the_other_api_is_asked_where_it_is_named(refusal: str) -> None:
    learned = Dialect().adjust_to_refusal(refusal, MODEL)
    assert learned == Dialect(api="responses")
    assert learned is not None
    assert learned.adapt_settings(MODEL).api == "responses"
    # Switching back would never end.
    assert learned.adjust_to_refusal("Please use v1/chat/completions.", MODEL) is None
    chosen = MODEL.model_copy(update={"api": "chat"})
    refused = Dialect().adjust_to_refusal(refusal, chosen)
    assert refused in (None, Dialect(frozenset({EFFORT})))


def test_responses_give_way_to_chat() -> None:
    model = MODEL.model_copy(update={"api": "responses"})
    refusal = "gpt-4o-search-preview is not supported with the Responses API."
    assert Dialect().adjust_to_refusal(refusal, model) is None
    assert Dialect(api=None).adapt_settings(model).api == "responses"


@pytest.mark.parametrize(
    "refusal",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Missing `reasoning_content` field in the assistant message at message index 2.",
    ],
)
def test_reasoning_that_is_demanded_is_sent_even_after_it_was_refused(refusal: str) -> None:
    learned = Dialect(frozenset({REASONING})).adjust_to_refusal(refusal, MODEL)
    assert learned == Dialect(needs_reasoning=True)
    assert learned is not None
    assert learned.adapt_settings(MODEL).send_reasoning is True
    assert learned.adjust_to_refusal(refusal, MODEL) is None


@pytest.mark.parametrize(
    ("refusal", "before", "after"),
    [
        (
            "Encrypted content is not supported with this model.",
            b',"include":["reasoning.encrypted_content"]', b"",
        ),
        (
            "Invalid schema for function 'move_file': 'minimum' is not permitted.",
            b',"strict":true', b',"strict":false',
        ),
        ("Unknown parameter: 'prompt_cache_key'.", b',"prompt_cache_key":"longhaul-1"}', b"}"),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", b"", b""),
    ],
)  # fmt: skip
def test_what_the_responses_api_does_not_take_is_left_out(
    refusal: str, before: bytes, after: bytes
) -> None:
    model = MODEL.model_copy(update={"api": "responses"})
    learned = Dialect().adjust_to_refusal(refusal, model)
    assert learned is not None
    assert learned.adapt_body(b"{%b" % before) == b"{%b" % after
    # A keyword that is refused in a schema that is not strict is left out as well.
    again = learned.adjust_to_refusal(refusal, model)
    assert again is None or again.keywords == {"minimum"}


@pytest.mark.parametrize(
    "refusal",
    [
        "max_tokens is too large: 8000. This model supports at most 4096 completion tokens, "
        "whereas you provided 8000.",
        "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for m-2024",
        "`max_completion_tokens` must be less than or equal to `4096`",
    ],
)
def test_a_limit_that_is_named_is_kept_to(refusal: str) -> None:
    learned = Dialect().adjust_to_refusal(f"Error code: 400 - {refusal}", MODEL)
    assert learned is not None
    assert learned.adapt_settings(MODEL).max_output_tokens == 4096
    assert (
        learned.adapt_settings(ModelConfig(name="m", max_output_tokens=99)).max_output_tokens == 99
    )


@pytest.mark.parametrize(
    "refusal", ["I will not", WRONG, "max_tokens is wrong (400)", "no tool_choice", ""]
)
def test_what_names_nothing_teaches_nothing(refusal: str) -> None:
    assert Dialect().adjust_to_refusal(refusal, MODEL) is None


def test_an_endpoint_that_refuses_everything_is_not_asked_for_ever() -> None:
    refusal = json.dumps({"you sent": [*range(1000, 8000), "max_tokens", "stream", "temperature",
                                    "stream_options", "max_completion_tokens"]})  # fmt: skip
    dialect, times = Dialect(), 0
    while learned := dialect.adjust_to_refusal(refusal, dialect.adapt_settings(MODEL)):
        dialect, times = learned, times + 1
    assert times == 5


def worded(*messages: dict[str, Any], without: str) -> Any:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return json.loads(Dialect(frozenset({without})).adapt_body(body))["messages"]


def test_settings_are_named_as_the_endpoint_wants_them() -> None:
    body = simple_prompt_body(MODEL, "s", 'What is "max_completion_tokens": 3?')
    sent = json.loads(Dialect(frozenset({LIMIT, COUNTS})).adapt_body(body))
    assert (sent["max_tokens"], sent["stream"]) == (8000, True)
    assert not {"max_completion_tokens", "stream_options"} & set(sent)
    assert "max_completion_tokens" in sent["messages"][1]["content"]


def test_a_message_of_calls_alone_has_text() -> None:
    messages = [ASKED, {**CALLS, "content": None}, {"role": "user", "content": str(CALLS)}]
    body = encode_without_credentials({"model": "m", "messages": messages})
    sent = json.loads(Dialect(frozenset({NULL})).adapt_body(body))["messages"]
    assert sent == [ASKED, {**CALLS, "content": ""}, messages[2]]


def test_sides_alternate() -> None:
    sent = worded(ASKED, ASKED, TALK, CALLS, *RESULTS, ASKED, without=TURNS)
    roles = ["user", "assistant", "user", "assistant", "user", "assistant", "tool", "tool"]
    assert [one["role"] for one in sent] == [*roles, "assistant", "user"]
    assert all(one["content"] for one in sent if "tool_calls" not in one)


def test_ids_are_short_and_still_name_their_calls() -> None:
    _, calls, *results = worded(ASKED, CALLS, *RESULTS, without=IDS)
    ids = [call["id"] for call in calls["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in results]
    assert len(set(ids)) == 2
    assert all(len(one) == 9 and one.isalnum() for one in ids)


UNKNOWN = """Unknown name \\"%s\\" at 'tools[0].function_declarations[0]"""


def test_keywords_of_schemas_that_are_named_are_left_out() -> None:
    refusal = (
        f"{UNKNOWN % '$schema'}.parameters': Cannot find field.\n{UNKNOWN % 'const'}.parameters'"
    )
    learned = Dialect().adjust_to_refusal(refusal, MODEL)
    assert learned == Dialect(keywords=frozenset({"$schema", "const"}))
    assert learned is not None
    more = "parameters.properties[on].format: only 'enum' and 'date-time' are supported for STRING"
    learned = learned.adjust_to_refusal(more, MODEL)
    assert learned is not None
    field = {"type": "string", "const": "a", "format": "date"}
    schema = {"$schema": "x", "properties": {"const": field}, "required": ["const"]}
    tool = {"function": {"name": "find", "parameters": schema}}
    body = json.dumps({"tools": [tool], "messages": []}).encode()
    [sent] = json.loads(learned.adapt_body(body))["tools"]
    assert sent["function"]["parameters"] == {
        "properties": {"const": {"type": "string"}}, "required": ["const"]
    }  # fmt: skip
    assert learned.adjust_to_refusal(refusal, MODEL) is None

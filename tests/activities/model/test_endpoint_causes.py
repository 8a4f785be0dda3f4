"""Why an endpoint refuses, in the words of many: each cause is told by all that came together."""

import json
import time
from email.utils import formatdate
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from temporalio.exceptions import ApplicationError

from activities.model.client import call_endpoint
from activities.model.dialect import Dialect
from activities.model.endpoint_errors import endpoint_refusal_text
from activities.model.endpoint_waits import named_wait_seconds
from activities.model.endpoint_wordings import endpoint_remedy, says_too_long
from config.schema.model_settings import ModelConfig
from protocol.failure_details import LARGE, read_helps_detail, read_mend_detail

MODEL = ModelConfig(name="m")
HTML = "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>"


async def fail(
    status: int,
    body: Any,
    *,
    headers: dict[str, str] | None = None,
    request: bytes = b"{}",
    model: ModelConfig = MODEL,
) -> ApplicationError:
    """Return the failure for an answer; a text is a page, and status 200 a stream."""
    kind = "text/html" if isinstance(body, str) else "application/json"
    content = body if isinstance(body, str) else json.dumps(body)
    if status == 200:
        kind, content = "text/event-stream", f"data: {content}\n\n"
    answer = httpx2.Response(
        status, headers={"content-type": kind, **(headers or {})}, content=content.encode()
    )
    transport = httpx2.MockTransport(lambda _: answer)
    client = AsyncOpenAI(
        base_url="http://model/v1", api_key="k", max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )  # fmt: skip
    with pytest.raises(ApplicationError) as caught:
        await call_endpoint(lambda _: client, model, request)
    return caught.value


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


LONG = [
    said("Range of input length should be [1, 30720]", code="InvalidParameter"),
    said("Prompt exceeds max length", code="1261"),
    said("Prompt exceeds max length"),
    said("Please reduce the length of the messages or completion."),
    {"error": "`inputs` must have less than 4095 tokens. Given: 5021", "error_type": "validation"},
    {"code": 20015, "message": "length of prompt_tokens (40022) must be less than max_seq_len "
     "(32768).", "data": None},
    {"error_code": "BAD_REQUEST", "message": "Input request (9120 tokens) exceeds the maximum of "
     "8192 for this endpoint"},
    said("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768"),
    said("The prompt is too long: 200000, model maximum context length: 131071"),
    said("messages token length must be in (0, 6144], but got 9001"),
    said("total number of input tokens 12,000 is over the limit of 8,192"),
    said("输入的文本过长 超过模型限制 8192", code="1210"),
    {"error": {"message": "Provider returned error", "metadata": {
        "raw": json.dumps(said("Input is longer than the 16384 tokens of the context"))}}},
]  # fmt: skip
NOT_LONG = [
    said("Invalid 'tools[0].function.name': string too long. Expected a string with maximum "
         "length 64, but got a string with length 70 instead."),
    said("max_tokens is too large: 8000. This model supports at most 4096 completion tokens."),
    said("Range of max_tokens should be [1, 8192]"),
    said("tools: at most 128 functions are allowed"),
    said("too long"),
]  # fmt: skip
CREDIT = [
    (429, said("Insufficient balance or no resource package. Please recharge.", code="1113")),
    (429, said("Your account is suspended due to insufficient balance, please recharge",
               type="exceeded_current_quota_error")),
    (400, said("Your credit balance is too low to access the API. Please go to Plans & Billing")),
    (402, said("Insufficient Balance")),
    (403, said("账户余额不足")),
    (403, said("Your account has run out of credits", code="permission_denied")),
    (429, said("You exceeded your current quota, please check your plan and billing details.")),
    (400, {"code": "Arrearage", "message": "Access denied, please make sure your account is in "
           "good standing."}),
    (200, said("insufficient balance", code="1113")),
]  # fmt: skip
CONTENT = [
    (403, said("m requires moderation. Your input was flagged for violence", code=403,
               metadata={"reasons": ["violence"], "flagged_input": "…"})),
    (400, {"code": "data_inspection_failed", "message": "Input data may contain inappropriate "
           "content."}),
    (400, said("The response was filtered due to the prompt triggering Azure OpenAI's content "
               "management policy.", code="content_filter")),
    (400, said("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301")),
]  # fmt: skip


@pytest.mark.parametrize("body", LONG, ids=range(len(LONG)))
async def test_a_request_that_is_too_long_is_told_in_any_words(body: Any) -> None:
    assert (await fail(400, body)).type == "ContextTooLong"


@pytest.mark.parametrize("body", NOT_LONG, ids=range(len(NOT_LONG)))
async def test_another_limit_is_not_the_context(body: Any) -> None:
    error = await fail(400, body)
    assert error.type == "ModelRefused"
    assert LARGE not in error.details


@pytest.mark.parametrize("words", ["Rate limit of 30000 tokens per minute exceeded for the input",
                                   "Too many requests, please wait 600 s"])  # fmt: skip
def test_a_rate_is_not_a_length(words: str) -> None:
    assert not says_too_long(words)


@pytest.mark.parametrize(("status", "body"), CREDIT, ids=range(len(CREDIT)))
async def test_an_empty_account_wants_credit(status: int, body: Any) -> None:
    error = await fail(status, body)
    assert (error.type, read_mend_detail(error.details)) == ("Credentials", "Add credit")


async def test_a_quota_that_is_renewed_in_a_while_is_waited_for() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
    words = "You exceeded your current quota, please check your plan and billing details."
    error = await fail(429, said(words, status="RESOURCE_EXHAUSTED", details=[info]))
    assert (error.type, error.non_retryable) == ("Endpoint", False)
    assert error.next_retry_delay
    assert error.next_retry_delay.total_seconds() == 37


@pytest.mark.parametrize(("status", "body"), CONTENT, ids=range(len(CONTENT)))
async def test_content_that_is_refused_is_no_bad_key(status: int, body: Any) -> None:
    error = await fail(status, body)
    assert error.type == "ModelRefused"
    assert "for its content" in error.message
    assert "model.name=" in read_helps_detail(error.details)


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_a_page_before_the_endpoint_is_told_as_one(status: int) -> None:
    error = await fail(status, HTML)
    assert (error.type, error.non_retryable) == ("Endpoint", False)
    assert f"({status}: Just a moment...)" in error.message
    assert "key" not in error.message
    assert "let the worker through" in read_helps_detail(error.details)


async def test_what_can_be_afforded_is_tried_and_named() -> None:
    words = ("This request requires more credits, or fewer max_tokens. You requested up to 8000 "
             "tokens, but can only afford 5000.")  # fmt: skip
    error = await fail(402, said(words, code=402))
    assert error.type == "Credentials"
    assert "model.max_output_tokens=5000" in read_mend_detail(error.details)
    dialect = Dialect().adjust_to_refusal(endpoint_refusal_text(error), MODEL)
    assert dialect is not None
    assert dialect.adapt_settings(MODEL).max_output_tokens == 5000
    assert dialect.adjust_to_refusal(endpoint_refusal_text(error), MODEL) is None


async def test_a_large_request_that_is_refused_may_be_too_long() -> None:
    unknown = said("Bad request")
    assert LARGE in (await fail(400, unknown, request=b" " * 70_000)).details
    assert LARGE not in (await fail(400, unknown, request=b" " * 9_000)).details
    small = MODEL.model_copy(update={"window": 4_000})
    assert LARGE in (await fail(400, unknown, request=b" " * 9_000, model=small)).details


@pytest.mark.parametrize(("status", "kind"), [(401, "Credentials"), (429, "Endpoint"),
                                              (500, "Endpoint")])  # fmt: skip
async def test_an_error_in_a_stream_has_its_status(status: int, kind: str) -> None:
    assert (await fail(200, said("no", code=status))).type == kind


NOW = {"date": formatdate(time.time(), usegmt=True)}


@pytest.mark.parametrize(
    ("headers", "body", "words", "seconds"),
    [
        ({"retry-after-ms": "12500"}, None, "", 12.5),
        ({"retry-after-ms": "12500", "retry-after": "90"}, None, "", 12.5),
        ({"retry-after": "1m30s"}, None, "", 90),
        ({}, {"error": {"details": [{"retryDelay": "41.5s"}]}}, "", 41.5),
        ({}, {"retry_after": 8}, "", 8),
        ({}, {"error": {"retry_after_ms": 8000}}, "", 8),
        ({}, {"error": {"metadata": {"retryAfter": "20"}}}, "", 20),
        ({}, {"error": {"metadata": {"raw": '{"retry_after_seconds": 33}'}}}, "", 33),
        ({}, {"error": {"metadata": {"headers": {"Retry-After": "14"}}}}, "", 14),
        ({}, None, "Rate limit reached. Please try again in 1m12.5s. Visit …", 72.5),
        ({}, None, "Please retry after 350 milliseconds", 1),
        ({}, None, "Please retry in 37.4s.", 37.4),
        ({}, None, "Wait 2 minutes before the next request", 120),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s",
          "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "24h"}, None, "",
         360),
        ({"x-ratelimit-reset": str(int(time.time() * 1000) + 30_000), **NOW}, None, "", 30),
        ({"retry-after": "0"}, None, "", 1),
        ({"retry-after": "99999"}, None, "", 3600),
        ({}, {"error": {"message": "busy", "code": 429}}, "busy in model 3", None),
    ],
)  # fmt: skip
def test_a_time_to_wait_is_read_wherever_it_stands(
    headers: dict[str, str], body: Any, words: str, seconds: float | None
) -> None:
    assert named_wait_seconds(headers, body, words) == pytest.approx(seconds, abs=2)


@pytest.mark.parametrize(
    ("words", "helps"),
    [
        ("Missing reasoning_content in the assistant message", "model.send_reasoning=true"),
        ("messages.2.reasoning_content: Extra inputs are not permitted", "send_reasoning=false"),
        ("Unsupported value: 'reasoning_effort' xhigh", "model.reasoning_effort=null"),
        ("temperature must be 1", "model.temperature=null"),
        (
            "Function tools with reasoning_effort are not supported for m in /v1/chat/completions."
            " Please use /v1/responses instead.",
            "model.api=responses",
        ),
        ("m is only supported in v1/chat/completions and not in v1/responses", "model.api=chat"),
        ("messages.0.content.0.cache_control: not permitted", "model.cache_marks=none"),
        ("Unknown parameter: 'prompt_cache_breakpoint'", "model.cache_marks=none"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "tool-call parser"),
        ("registry.example/library/x does not support tools", "model.name="),
        ("I will not", ""),
    ],
)
def test_the_remedy_names_the_setting_that_helps(words: str, helps: str) -> None:
    assert helps in endpoint_remedy(words)
    assert bool(endpoint_remedy(words)) == bool(helps)


@pytest.mark.parametrize(
    ("refusal", "keyword"),
    [
        ("Unable to generate parser for this template. Automatic parser generation failed: JSON "
         "schema conversion failed: Pattern must start with '^' and end with '$'", "pattern"),
        ("Invalid JSON schema: unsupported keyword 'patternProperties'", "patternProperties"),
        ("tools.0.function.parameters: keyword 'format' is not supported", "format"),
        ("Error compiling grammar: regular expression is not supported", "pattern"),
        ("Unrecognized schema keyword: $defs in function 'find'", "$defs"),
        ("tools[2].parameters: 'exclusiveMinimum' is not supported", "exclusiveMinimum"),
    ],
)  # fmt: skip
def test_a_keyword_of_a_schema_that_is_refused_is_learned(refusal: str, keyword: str) -> None:
    learned = Dialect().adjust_to_refusal(refusal, MODEL)
    assert learned is not None
    assert learned.keywords == {keyword}
    assert learned.adjust_to_refusal(refusal, MODEL) is None


@pytest.mark.parametrize("refusal", ["Invalid JSON schema: property 'path' is not allowed here",
                                     "unsupported keyword 'format' in the greeting"])  # fmt: skip
def test_what_is_no_keyword_of_a_schema_is_not_learned(refusal: str) -> None:
    learned = Dialect().adjust_to_refusal(refusal, MODEL)
    assert learned is None or not learned.keywords


@pytest.mark.parametrize(
    ("refusal", "name"),
    [
        ("Unknown parameter: 'input[1].status'.", "status"),
        ("input.3.content.0.annotations: Extra inputs are not permitted", "annotations"),
        ("Invalid 'input[2].id': 'fc_x'. Expected an ID that begins with 'fc'.", "id"),
    ],
)
def test_a_field_of_an_item_that_is_refused_is_left_out(refusal: str, name: str) -> None:
    model = MODEL.model_copy(update={"api": "responses"})
    learned = Dialect().adjust_to_refusal(refusal, model)
    assert learned == Dialect(item_fields=frozenset({name}))
    item = {"type": "reasoning", "encrypted_content": "ZW5j", name: "x", "arguments": '{"id": 1}'}
    sent = json.loads(learned.adapt_body(json.dumps({"input": [item]}).encode()))["input"]
    assert sent == [{key: value for key, value in item.items() if key != name}]
    # Then the whole item gives way to our own form.
    other = learned.adjust_to_refusal(refusal, model)
    assert other is not None
    assert other.adapt_settings(model).send_reasoning is False
    assert other.adjust_to_refusal(refusal, other.adapt_settings(model)) is None

"""Whatever an endpoint answers becomes a typed failure that says what to do, or a reply."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from email.utils import formatdate
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from temporalio.exceptions import ApplicationError

from activities.model.client import call_endpoint
from activities.model.endpoint import connect_endpoint
from activities.model.message_forms import ChatMessageForm
from activities.model.providers import REHEARSAL, endpoint_model_name
from activities.model.reply_message import reply_message, reply_provider_data
from activities.model.reply_stream import MAX_TEXT, StreamedReply
from activities.redaction.credentials import encode_without_credentials
from config.schema.model_settings import ModelConfig
from protocol.failure_details import read_mend_detail
from protocol.requests import MAX_CALLS
from rehearsal import Cut, Failure, RehearsalTransport, Reply, Script, Stall
from tests.activities.standing import environment

MODEL = ModelConfig.model_validate({"name": "m", "temperature": None})
BODY = json.dumps({"model": "m", "stream": True, "messages": [], "tools": []}).encode()
MIXED = Reply("hello", calls=[("list_files", {})])


async def asked(
    transport: Any, patience: float = 5, model: ModelConfig = MODEL, body: bytes = BODY
) -> StreamedReply:
    client = AsyncOpenAI(
        base_url="http://model/v1",
        api_key="k",
        max_retries=0,
        timeout=patience,
        http_client=httpx2.AsyncClient(transport=transport, timeout=patience),
    )
    return await call_endpoint(lambda _: client, model, body)


def sent_back(reply: StreamedReply, maker: str, reasoning: bool | None = None) -> str:
    """Return the message that such a provider is sent about a reply from `one`."""
    reply.maker = "one"
    message, data = reply_message(1, reply), reply_provider_data(1, reply)
    form = ChatMessageForm(maker, reasoning)
    return form.render(
        encode_without_credentials(message), encode_without_credentials(data) if data else b""
    ).decode()


async def failed(scripted: Any, patience: float = 5) -> ApplicationError:
    with Script(scripted) as script, pytest.raises(ApplicationError) as caught:
        await asked(RehearsalTransport(script), patience)
    return caught.value


@pytest.mark.parametrize(
    ("answer", "kind", "retried", "words"),
    [
        (Failure(401, "bad key"), "Credentials", False, "refused the key in OPENAI_API_KEY"),
        (Failure(403, "no"), "Credentials", False, "refused the key"),
        (Failure(402, "no"), "Credentials", False, "nothing left to spend"),
        (Failure(404, "no model"), "Credentials", False, "not offer m at http://model/v1/chat"),
        (Failure(400, "API key not valid. Pass one."), "Credentials", False, "refused the key"),
        (Failure(400, "m is not a valid model ID"), "Credentials", False, "does not offer m"),
        (Failure(400, "Invalid model: m"), "Credentials", False, "does not offer m"),
        (Failure(429, code="insufficient_quota"), "Credentials", False, "nothing left"),
        (Failure(400, "too long"), "ModelRefused", False, "too long"),
        (Failure(422, "odd"), "ModelRefused", False, "odd"),
        (Failure(408), "Endpoint", True, "408"),
        (Failure(429), "Endpoint", True, "429"),
        (Failure(500), "Endpoint", True, "500"),
        (Failure(503), "Endpoint", True, "503"),
        (Failure(503, "half of a character: \ud83d"), "Endpoint", True, "character: ?"),
        (Cut(MIXED), "Endpoint", True, "broke off"),
        (Stall(MIXED), "Endpoint", True, "in time"),
    ],
)
async def test_failures(answer: Any, kind: str, retried: bool, words: str) -> None:
    error = await failed(answer, patience=0.2)
    assert error.type == kind
    assert error.non_retryable is not retried
    assert words in error.message
    assert "\n" not in error.message
    # The job says what to do apart from what is wrong.
    assert bool(read_mend_detail(error.details)) is (kind == "Credentials")
    assert "resume" not in error.message


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("7", 7), ("0", 1), ("-5", 1), ("nan", 1), ("inf", 3600), ("99999", 3600)],
)
async def test_retry_after_is_followed_within_reason(retry_after: str, seconds: int) -> None:
    error = await failed(Failure(429, headers={"retry-after": retry_after}))
    assert error.next_retry_delay == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("ahead", "least", "most"), [(-600, 1, 1), (120, 100, 120), (86_400, 3600, 3600)]
)
async def test_a_date_to_retry_after_is_followed_within_reason(
    ahead: int, least: int, most: int
) -> None:
    date = formatdate(time.time() + ahead, usegmt=True)
    error = await failed(Failure(429, headers={"retry-after": date}))
    assert error.next_retry_delay
    assert least <= error.next_retry_delay.total_seconds() <= most


async def test_a_date_to_retry_after_is_held_against_the_clock_of_who_says_it() -> None:
    answered, then = (formatdate(time.time() + hour, usegmt=True) for hour in (3600, 3610))
    error = await failed(Failure(429, headers={"retry-after": then, "date": answered}))
    assert error.next_retry_delay == timedelta(seconds=10)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (4, 1), (5, 2), (9, 32), (600, 60)])
async def test_an_endpoint_that_keeps_refusing_is_asked_ever_less_often(
    attempt: int, seconds: int
) -> None:
    busy = Failure(429, headers={"retry-after": "1"})
    error = await environment(attempt=attempt).run(failed, busy)
    assert error.next_retry_delay == timedelta(seconds=seconds)


async def test_what_is_neither_seconds_nor_a_date_is_left_alone() -> None:
    error = await failed(Failure(429, headers={"retry-after": "soon"}))
    assert (error.non_retryable, error.next_retry_delay) == (False, timedelta(seconds=1))


def streaming(*chunks: Any, raw: bytes | None = None) -> httpx2.MockTransport:
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    content = raw if raw is not None else "".join([*events, "data: [DONE]\n\n"]).encode()
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=content))


def delta(finish: str | None = None, **content: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": content, "finish_reason": finish}]}


@pytest.mark.parametrize(
    "transport",
    [
        streaming(),
        streaming({"choices": []}),
        streaming(raw=b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'),
        streaming({"choices": None}),
        streaming({"choices": "odd"}),
        streaming({"choices": [{"delta": {"tool_calls": [7]}}]}),
        streaming([1, 2]),
        streaming(raw=b"data: {broken\n\n"),
        streaming(raw=b"data: " + b"[" * 100_000 + b"\n\n"),
        streaming(raw=b"<html>sign in</html>"),
        streaming({"error": {"message": "overloaded", "code": "overloaded"}}),
    ],
    ids=range(11),
)
async def test_what_is_no_complete_reply_is_asked_for_again(transport: Any) -> None:
    with pytest.raises(ApplicationError) as caught:
        await asked(transport)
    assert caught.value.type == "Endpoint"
    assert not caught.value.non_retryable


async def test_five_calls_at_once_keep_their_order() -> None:
    calls: Any = [("write_file", {"path": str(n)}) for n in range(5)]
    reply = await asked(RehearsalTransport(Script(Reply(calls=calls))))
    assert [json.loads(raw)["path"] for _, raw in reply.calls] == list("01234")
    assert reply.finish == "tool_calls"
    assert reply.usage.model_calls == 1


async def test_calls_without_an_index_are_told_apart() -> None:
    pieces: list[dict[str, str]] = [
        {"name": "a", "arguments": '{"x":'},
        {"arguments": "1}"},
        {"name": "b", "arguments": "{}"},
    ]
    chunks = [delta(tool_calls=[{"function": piece}]) for piece in pieces]
    reply = await asked(streaming(*chunks, delta("tool_calls")))
    assert reply.calls == [("a", '{"x":1}'), ("b", "{}")]


def piece(id_: str | None, name: str | None, arguments: str, index: int = 0) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {"index": index, "function": function, **({"id": id_} if id_ else {})}


async def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    pieces = [
        piece("x", "a", '{"x":1}'),
        piece("y", "a", '{"x":'),
        piece(None, None, "2}"),
        piece("z", "b", "{}", 1),
    ]
    chunks = [delta(tool_calls=[one]) for one in pieces]
    reply = await asked(streaming(*chunks, delta("tool_calls")))
    assert reply.calls == [("a", '{"x":1}'), ("a", '{"x":2}'), ("b", "{}")]


async def test_an_id_that_changes_within_a_call_begins_no_other() -> None:
    chunks = [delta(tool_calls=[one]) for one in (piece("x", "a", '{"x":'), piece("y", None, "1}"))]
    assert (await asked(streaming(*chunks, delta("tool_calls")))).calls == [("a", '{"x":1}')]


async def test_a_name_that_comes_with_each_piece_is_said_once() -> None:
    chunks = [delta(tool_calls=[piece("x", "a", part)]) for part in ('{"x":', "1}")]
    assert (await asked(streaming(*chunks, delta("tool_calls")))).calls == [("a", '{"x":1}')]


@pytest.mark.parametrize(
    ("kind", "content", "complaint"),
    [
        ("application/json", b'{"choices": null, "status_msg": "login fail"}', '"login fail"}'),
        ("application/json", b"", "it is empty"),
        ("text/html; charset=utf-8", b"<html>Welcome</html>", "/chat/completions is a web page"),
        ("text/event-stream", b"data: overloaded\n\n", "no reply: overloaded"),
    ],
)
async def test_what_came_instead_of_a_reply_is_told(
    kind: str, content: bytes, complaint: str
) -> None:
    headers = {"content-type": kind}
    response = httpx2.Response(200, headers=headers, content=content)
    with pytest.raises(ApplicationError, match=complaint) as caught:
        await asked(httpx2.MockTransport(lambda _: response))
    assert (caught.value.type, caught.value.non_retryable) == ("Endpoint", False)


async def test_what_comes_beside_a_call_is_sent_back_with_it() -> None:
    signed = {"google": {"thought_signature": "c2VhbA=="}}
    pieces = [piece("x", "a", "{}") | {"extra_content": signed}, piece("y", "b", "{}", 1)]
    chunks = [delta(tool_calls=[one]) for one in pieces]
    reply = await asked(streaming(*chunks, delta("tool_calls")))
    sent = json.loads(sent_back(reply, "one"))
    assert [call.get("extra_content") for call in sent["tool_calls"]] == [signed, None]
    assert "extra_content" not in sent_back(reply, "another")
    huge = piece("x", "a", "{}") | {"extra_content": {"more": "x" * 200_000}}
    reply = await asked(streaming(delta(tool_calls=[huge]), delta("tool_calls")))
    assert "extra_content" not in sent_back(reply, "one")


async def test_content_in_parts_is_read() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [[thought], [{"type": "text", "text": "hel"}], "lo"]
    reply = await asked(streaming(*(delta(content=part) for part in parts), delta("stop")))
    assert reply.text == "hello"


async def test_what_a_model_says_when_it_refuses_is_what_it_says() -> None:
    reply = await asked(streaming(delta(refusal="I can"), delta(refusal="not."), delta("stop")))
    assert reply.text == "I cannot."


async def test_arguments_that_are_an_object_are_taken_as_one() -> None:
    call = {"function": {"name": "a", "arguments": {"path": "ä.md"}}}
    assert (await asked(whole({"content": None, "tool_calls": [call]}))).calls == [
        ("a", '{"path": "ä.md"}')
    ]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("error_body", "kind", "words"),
    [
        ({"message": "out of tea", "code": 502}, "Endpoint", "out of tea"),
        ("out of tea", "Endpoint", "out of tea"),
        ({"message": "maximum context length is 9", "code": 400}, "ContextTooLong", "length is 9"),
    ],
)
async def test_an_error_under_status_200_is_one(
    stream: bool, error_body: Any, kind: str, words: str
) -> None:
    one_piece = httpx2.MockTransport(lambda _: httpx2.Response(200, json={"error": error_body}))
    with pytest.raises(ApplicationError, match=words) as caught:
        await asked(streaming({"error": error_body}) if stream else one_piece)
    assert caught.value.type == kind


@pytest.mark.parametrize(
    "reported_usage",
    [
        None,
        {},
        {"prompt_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": -5},
        {"prompt_tokens": 10**400, "completion_tokens": "many"},
        [7, 3],
        {"prompt_tokens_details": [64]},
    ],
)
async def test_tokens_that_no_endpoint_counted_are_estimated(reported_usage: Any) -> None:
    chunks = [delta(content="word " * 80), delta("stop"), {"choices": [], "usage": reported_usage}]
    reply = await asked(streaming(*chunks))
    assert reply.usage.prompt_tokens == len(BODY) // 4
    assert reply.usage.completion_tokens == 100
    assert reply.usage.cached_tokens == 0


async def test_tokens_that_were_counted_are_taken() -> None:
    reported_usage = {
        "prompt_tokens": 70, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 64}
    }  # fmt: skip
    usage = (await asked(streaming(delta("stop"), {"choices": [], "usage": reported_usage}))).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (70, 3, 64)


async def test_too_much_is_cut() -> None:
    many: Any = [("list_files", {})] * 50
    reply = await asked(RehearsalTransport(Script(Reply("x" * 1_000_000, calls=many))))
    assert (len(reply.text), len(reply.calls)) == (MAX_TEXT, MAX_CALLS)
    assert reply.dropped_calls == 50 - MAX_CALLS


async def test_lone_surrogates_are_replaced() -> None:
    call = {"index": 0, "function": {"name": "a\ud800", "arguments": "{}\udfff"}}
    reply = await asked(streaming(delta("stop", content="\ud800", tool_calls=[call])))
    assert (reply.text, reply.calls) == ("?", [("a_", "{}?")])
    reply.model_dump_json()


def test_without_a_key_the_worker_is_told_which(
    monkeypatch: pytest.MonkeyPatch, clean: Callable[[], None]
) -> None:
    clean()
    with pytest.raises(ApplicationError, match="OPENAI_API_KEY is not set"):
        connect_endpoint(MODEL)
    assert endpoint_model_name(MODEL) == REHEARSAL
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert endpoint_model_name(MODEL) == "m"
    assert isinstance(connect_endpoint(MODEL), openai.AsyncOpenAI)


@pytest.mark.parametrize("address", ["127.0.0.1:8000/v1", "models.example/v1", "http://", "/v1"])
def test_an_address_that_is_none_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, clean: Callable[[], None], address: str
) -> None:
    clean()
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ApplicationError, match="OPENAI_BASE_URL cannot be used: expected") as got:
        connect_endpoint(MODEL)
    assert (got.value.type, got.value.non_retryable) == ("Credentials", True)


@pytest.mark.parametrize("key", ["\N{HORIZONTAL ELLIPSIS}", "one\ntwo"])
def test_a_key_that_no_header_can_hold_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, clean: Callable[[], None], key: str
) -> None:
    clean()
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ApplicationError, match="key in OPENAI_API_KEY has characters") as caught:
        connect_endpoint(MODEL)
    assert (caught.value.type, caught.value.non_retryable) == ("Credentials", True)


def test_a_line_end_is_no_part_of_a_key(
    monkeypatch: pytest.MonkeyPatch, clean: Callable[[], None]
) -> None:
    clean()
    monkeypatch.setenv("OPENAI_API_KEY", "k\r\n")
    assert connect_endpoint(MODEL).api_key == "k"


async def test_a_deployment_of_azures_is_asked_at_its_address_with_its_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    heard: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/openai/deployments/d?api-version=2024-06-01"
        with pytest.raises(ApplicationError):
            await call_endpoint(
                connect_endpoint, model := ModelConfig(name="m", base_url=url), BODY
            )
        await connect_endpoint(model).close()
    first, *headers = heard[0].lower().splitlines()
    assert " /openai/deployments/d/chat/completions?api-version=2024-06-01 " in first
    assert [one for one in headers if "secret" in one] == ["api-key: secret"]


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def removed() -> None:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            monkeypatch.delenv(name, raising=False)

    return removed


def whole(message: dict[str, Any], finish: str | None = "stop") -> httpx2.MockTransport:
    """Run a server that answers in one piece, whatever the request."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return httpx2.MockTransport(
        lambda _: httpx2.Response(200, json={"choices": [choice], "usage": usage})
    )


@pytest.mark.parametrize("stream", [True, False])
async def test_a_server_that_does_not_stream_is_understood(stream: bool) -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "function": {"name": "list_files", "arguments": "{}"}}],
    }
    model = MODEL.model_copy(update={"stream": stream})
    reply = await asked(whole(message), model=model)
    assert reply.calls == [("list_files", "{}")]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 3)


async def test_the_rehearsal_endpoint_is_understood_without_streaming() -> None:
    model = MODEL.model_copy(update={"stream": False})
    with Script(lambda request: MIXED if not request.get("stream") else Failure(400)) as script:
        reply = await asked(RehearsalTransport(script), model=model, body=b'{"messages":[]}')
    assert (reply.text, reply.calls) == ("hello", [("list_files", "{}")])


async def test_reasoning_is_kept_apart() -> None:
    for name in ("reasoning_content", "reasoning"):
        chunks = [delta(**{name: "Let me "}), delta(**{name: "think."}), delta(content="42")]
        reply = await asked(streaming(*chunks, delta("stop")))
        assert (reply.reasoning, reply.text) == ("Let me think.", "42")


async def test_a_stream_that_falls_silent_is_given_up_before_the_call_is() -> None:
    model = MODEL.model_copy(update={"stall_seconds": 1})
    with (
        Script(Stall(MIXED)) as script,
        pytest.raises(ApplicationError, match="said nothing for 1 s"),
    ):
        await asked(RehearsalTransport(script), patience=60, model=model)


class Dripping(httpx2.AsyncByteStream):
    """A reply that never ends."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b"data: %b\n\n" % json.dumps(delta(content="more ")).encode()
            await asyncio.sleep(0.01)


class Broken(httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"half"
        raise httpx2.RemoteProtocolError("peer closed the connection")


def sending(status: int, stream: httpx2.AsyncByteStream) -> httpx2.MockTransport:
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda _: httpx2.Response(status, headers=headers, stream=stream))


async def test_a_reply_that_never_ends_is_given_up_in_time() -> None:
    model = MODEL.model_copy(update={"timeout_seconds": 1})
    with pytest.raises(ApplicationError, match="did not answer in time") as caught:
        await asyncio.wait_for(asked(sending(200, Dripping()), 60, model), 20)
    assert (caught.value.type, caught.value.non_retryable) == ("Endpoint", False)


async def test_an_error_whose_body_breaks_off_is_the_endpoints() -> None:
    with pytest.raises(ApplicationError, match="peer closed the connection") as caught:
        await asked(sending(502, Broken()))
    assert (caught.value.type, caught.value.non_retryable) == ("Endpoint", False)


@pytest.mark.parametrize(
    "response",
    [
        Failure(400, "x", code="context_length_exceeded"),
        Failure(400, "This model's maximum context length is 8192 tokens."),
        Failure(413, "prompt is too long: 210000 tokens > 200000 maximum"),
        Failure(400, "the request exceeds the available context size", kind="server"),
    ],
)
async def test_a_request_that_is_too_long_is_told_from_others(response: Failure) -> None:
    error = await failed(response)
    assert (error.type, error.non_retryable) == ("ContextTooLong", True)


def answering(status: int, body: Any) -> httpx2.MockTransport:
    """Run an endpoint whose errors have an unusual form."""
    return httpx2.MockTransport(lambda _: httpx2.Response(status, json=body))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, [{"error": {"message": "The input token count (1200000) exceeds the maximum number "
                          "of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}]),
        (400, {"code": "invalid", "error": "This model's maximum prompt length is 131072 but the "
               "request contains 537812 tokens."}),
        (400, {"error": {"message": "prompt token count of 130000 exceeds the limit of 128000"}}),
        (400, {"error": {"message": "Your request exceeded model token limit: 262144"}}),
        (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 9 + 9"}}),
        (400, {"error": {"message": "Provider returned error", "code": 400,
                         "metadata": {"raw": '{"message": "prompt is too long: 9 > 5"}'}}}),
        (413, {"error": {"message": "Request Entity Too Large", "code": "request_too_large"}}),
        (413, "<html><head><title>413 Payload</title></head></html>"),
        (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 9"}),
        (429, {"error": {"message": "Request too large for m on tokens per min (TPM): Limit 30000, "
                         "Requested 33401.", "type": "tokens", "code": "rate_limit_exceeded"}}),
    ],
    ids=range(10),
)  # fmt: skip
async def test_servers_word_it_differently_that_a_request_is_too_long(
    status: int, body: Any
) -> None:
    with pytest.raises(ApplicationError) as caught:
        await asked(answering(status, body))
    assert (caught.value.type, caught.value.non_retryable) == ("ContextTooLong", True)


async def test_a_busy_server_is_not_taken_for_one_that_finds_a_request_too_long() -> None:
    error = await failed(Failure(429, "Too many tokens, please wait before trying again."))
    assert (error.type, error.non_retryable) == ("Endpoint", False)


@pytest.mark.parametrize(
    "body",
    [{"error": "out of tea"}, {"detail": "out of tea"}, [{"error": "out of tea"}], "out of tea"],
)
async def test_what_an_endpoint_says_in_a_form_of_its_own_is_told(body: Any) -> None:
    for status in (400, 401, 404, 503):
        with pytest.raises(ApplicationError, match=rf"{status}.*out of tea"):
            await asked(answering(status, body))


@pytest.mark.parametrize(
    ("code", "kind"),
    [("insufficient_quota", "Credentials"), ("context_length_exceeded", "ContextTooLong")],
)
async def test_an_error_within_a_stream_counts_as_one_before_it(code: str, kind: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        await asked(streaming({"error": {"message": "no", "code": code, "type": code}}))
    assert caught.value.type == kind


async def test_an_address_where_nothing_is_is_told_with_the_reason() -> None:
    address = "http://user:secret@127.0.0.1:1/v1?key=secret"
    with pytest.raises(ApplicationError) as caught:
        await call_endpoint(connect_endpoint, ModelConfig(name="m", base_url=address), BODY)
    assert "http://127.0.0.1:1/v1/chat/completions: " in str(caught.value)
    assert not any(word in str(caught.value) for word in ("secret", "Connection error"))


async def test_many_calls_at_once_leave_connections_that_the_next_ones_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    connections, all_under_way = 0, asyncio.Barrier(120)
    response_body = json.dumps(
        {"choices": [{"message": {"content": "Tea."}, "finish_reason": "stop"}]}
    )
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(response_body)}"
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while request_head := (await reader.readuntil(b"\r\n\r\n")).lower():
                await reader.readexactly(
                    int(request_head.partition(b"content-length: ")[2].split()[0])
                )
                await all_under_way.wait()
                writer.write(f"{head}\r\n\r\n{response_body}".encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", backlog=200) as server:
        port = server.sockets[0].getsockname()[1]
        model = ModelConfig(name="tea", base_url=f"http://127.0.0.1:{port}/v1")
        for _ in range(2):
            await asyncio.gather(
                *(call_endpoint(connect_endpoint, model, b"{}") for _ in range(120))
            )
        assert connections == 120
        await connect_endpoint(model).close()

"""Streams over a real connection, cut into pieces anywhere: what is read is always the same."""

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from temporalio.exceptions import ApplicationError

from activities.model.client import call_endpoint
from activities.model.reply_stream import StreamedReply
from config.schema.model_settings import ModelConfig
from tests.activities.model.test_responses import CALL, REASONING, ended, said
from tests.activities.model.test_streams import CALLS, Form, events
from tests.http_server import Handler, served
from tests.soak import soak

FORM = Form("right", "first only", "once", "pieces", "in turns")
TEXT = "é \u2028 → \U0001f343 data: [DONE]\\n\\n"
THOUGHT = {"choices": [{"index": 0, "delta": {"content": TEXT, "reasoning_content": TEXT}}]}
CHAT = b"data: %b\n\n" % json.dumps(THOUGHT, ensure_ascii=False).encode() + events(
    FORM.pieces(CALLS["three"]), "finish"
)
ITEMS = [REASONING, said(TEXT), CALL, {**CALL, "id": "fc_2", "call_id": "call_y"}]
RESPONSES = b": begins\n\n" + b"".join(
    f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n".encode()
    for one in ended("completed", *ITEMS)
)
STREAMS = {"chat": CHAT, "responses": RESPONSES}


class Pieces(Handler):
    """Sends each of its pieces as a separate chunk."""

    protocol_version = "HTTP/1.1"
    pieces: ClassVar[list[bytes]] = []
    is_whole: ClassVar[bool] = True

    def do_POST(self) -> None:
        self.body()
        self.give(b"", "text/event-stream", transfer_encoding="chunked")
        for piece in self.pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        if self.is_whole:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(Pieces) as url:
        yield url


def asked(
    address: str, api: Any, stream: bytes, cuts: set[int], *, whole: bool = True
) -> StreamedReply:
    places = [0, *sorted(cut for cut in cuts if 0 < cut < len(stream)), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(places)]
    Pieces.pieces, Pieces.is_whole = [piece for piece in pieces if piece], whole

    async def ask() -> StreamedReply:
        async with AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
            return await call_endpoint(lambda _: client, ModelConfig(name="m", api=api), b"{}")

    return asyncio.run(ask())


cuts_of = st.sets(st.integers(1, max(map(len, STREAMS.values()))), max_size=40)


@pytest.mark.parametrize("api", STREAMS)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_pieces_say_the_same_as_the_whole(address: str, api: str, line_end: bytes) -> None:
    stream = STREAMS[api].replace(b"\n", line_end)
    whole = asked(address, api, STREAMS[api], set())
    assert whole.text == TEXT
    assert len(whole.calls) == (3 if api == "chat" else 2)
    assert whole.items == ([] if api == "chat" else ITEMS)

    @settings(max_examples=soak(8, 150), deadline=None)
    @given(cuts_of)
    def same(cuts: set[int]) -> None:
        assert asked(address, api, stream, cuts) == whole

    same()


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_that_breaks_off_is_no_reply_or_has_only_whole_calls(
    address: str, api: str
) -> None:
    stream = STREAMS[api]
    whole = asked(address, api, stream, set())

    @settings(max_examples=soak(15, 300), deadline=None)
    @given(st.integers(0, len(stream) - 1), cuts_of, st.booleans())
    def known(end: int, cuts: set[int], ends: bool) -> None:
        try:
            reply = asked(address, api, stream[:end], cuts, whole=ends)
        except ApplicationError as error:
            assert (error.type, error.non_retryable) == ("Endpoint", False)
        else:
            # After a connection closed in order, what came whole counts.
            assert reply == whole or ends
            assert reply.calls == whole.calls[: len(reply.calls)]

    known()

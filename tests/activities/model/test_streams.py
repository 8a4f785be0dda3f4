"""Streams as endpoints send them: each is read as a person would, or nothing of it is run."""

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from temporalio.exceptions import ApplicationError

from activities.job.conversation_calls import MIXED_UP
from activities.model.call_assembly import assemble_call_pieces
from activities.model.call_pieces import Piece
from activities.model.client import call_endpoint
from activities.model.json_text import is_json_object
from activities.model.reply_message import wrap_unusable_arguments
from activities.model.reply_stream import StreamedReply
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_errors import ToolError
from config.schema.model_settings import ModelConfig
from tests.http_server import Handler, served
from tests.soak import patient, soak

STREAMS = Path(__file__).with_name("streams")
BOTH = [("read_file", '{"path":"a.md"}'), ("read_file", '{"path":"b.md"}')]
TOOLS = ("read_file", "write_file", "list_files", "edit")
BODY = json.dumps(
    {"messages": [], "tools": [{"type": "function", "function": {"name": t}} for t in TOOLS]}
).encode()

INDEX = ("right", "missing", "first only", "zero", "own")
ID = ("right", "first only", "missing", "constant", "changing")
NAME = ("once", "repeated", "late", "empty", "never")
ARGUMENTS = ("whole", "pieces", "name first", "name, then whole", "object", "object behind empty",
             "repeated", "whole, repeated", "repeated at the end", "whole, repeated at the end",
             "twice in one", "string", "string in pieces")  # fmt: skip
ORDER = ("one after the other", "in turns")
END = ("finish", "done", "neither")

Call = tuple[str, dict[str, Any]]
CALLS: dict[str, list[Call]] = {
    "two": [("read_file", {"path": "a.md"}), ("read_file", {"path": "b.md"})],
    "two tools": [("list_files", {"path": "a"}), ("read_file", {"path": "b.md"})],
    "three": [
        ("write_file", {"path": "a.json", "content": '{"a": [1, "}{"]}\\'}),
        ("write_file", {"path": "b.json", "content": "{}"}),
        ("edit", {"path": "c", "changes": [{"old": "{", "new": "}"}]}),
    ],
    "four": [("read_file", {"path": f"{name}.md"}) for name in "abcd"],
}


@dataclass(frozen=True)
class Form:
    """One way in which endpoints send calls."""

    index: str
    id: str
    name: str
    arguments: str
    order: str

    def pieces(self, calls: list[Call]) -> list[dict[str, Any]]:
        """Return the calls in the pieces that an endpoint of this form sends."""
        each = [self._of_one(*call) for call in calls]
        parts = [[(number, *part) for part in one] for number, one in enumerate(each)]
        if self.order == "in turns":
            turns = itertools.zip_longest(*parts)
            sent = [part for turn in turns for part in turn if part is not None]
        else:
            sent = list(itertools.chain(*parts))
        if self.arguments.endswith("repeated at the end"):
            has_name = self.name not in ("never", "once")
            sent += [(n, name if has_name else None, json.dumps(arguments))
                     for n, (name, arguments) in enumerate(calls)]  # fmt: skip
        return list(self._labelled(sent))

    def _of_one(self, name: str, arguments: dict[str, Any]) -> list[tuple[str | None, Any]]:
        """Return name and arguments in the pieces of one call."""
        text = json.dumps(arguments)
        cut = len(text) // 2
        forms: dict[str, list[Any]] = {
            "whole": [text],
            "pieces": [text[:3], text[3:cut], text[cut:]],
            "name first": ["", text[:cut], text[cut:]],
            "name, then whole": ["", text],
            "object": [arguments],
            "object behind empty": [{}, text[:cut], text[cut:]],
            "whole, repeated": [text, text],
            "whole, repeated at the end": [text],
            "string in pieces": [json.dumps(text)[:cut], json.dumps(text)[cut:]],
            "repeated": [text[:cut], text[cut:], text],
            "repeated at the end": [text[:cut], text[cut:]],
            "twice in one": [text + text],
            "string": [json.dumps(text)],
        }
        texts = forms[self.arguments]
        if self.name == "late" and len(texts) == 1:
            texts.append("")
        places: set[int] = {
            "once": {0},
            "empty": {0},
            "repeated": set(range(len(texts))),
            "late": {1},
            "never": set(),
        }[self.name]
        other = "" if self.name == "empty" else None
        return [(name if n in places else other, part) for n, part in enumerate(texts)]

    def _labelled(self, sent: list[tuple[int, str | None, Any]]) -> Iterator[dict[str, Any]]:
        used_numbers: set[int] = set()
        for place, (number, name, part) in enumerate(sent):
            piece: dict[str, Any] = {"function": {"name": name, "arguments": part}}
            index = {"right": number, "zero": 0, "own": place, "missing": None}.get(
                self.index, None if number in used_numbers else number
            )
            identity = {
                "right": f"call_{number}",
                "missing": None,
                "constant": "call_0",
                "changing": f"x{place}",
            }.get(self.id, None if number in used_numbers else f"call_{number}")
            if index is not None:
                piece["index"] = index
            if identity is not None:
                piece["id"] = identity
            used_numbers.add(number)
            yield piece

    @property
    def is_labelled(self) -> bool:
        """Return whether each piece says to which call it belongs."""
        return self.index == "right" or self.id == "right"

    @property
    def is_readable(self) -> bool:
        """Return whether a person can tell what each call is."""
        if self.name == "never":
            return False
        return self.is_labelled or self.order == "one after the other"


FORMS = [Form(*chosen) for chosen in itertools.product(INDEX, ID, NAME, ARGUMENTS, ORDER)]


def read(pieces: list[dict[str, Any]]) -> list[tuple[str, str]]:
    calls = assemble_call_pieces([Piece.parse(one) for one in pieces], lambda: frozenset(TOOLS))
    return [(call.name, call.arguments) for call in calls]


def run(calls: list[tuple[str, str]]) -> list[Call]:
    """Return the calls that would run: those with a name and an object that marks no refusal."""
    objects = [(name, json.loads(raw)) for name, raw in calls if name and is_json_object(raw)]
    return [(name, arguments) for name, arguments in objects if MIXED_UP not in arguments]


def is_exactly(pieces: list[dict[str, Any]], actual: list[Call]) -> bool:
    """Return whether an endpoint that sends calls whole and labels them well sends exactly these
    pieces for what was read: then no reader can know that some are repetitions.
    """
    for identity in (lambda one: one.get("id"), lambda one: one.get("index")):
        labels = [identity(one) for one in pieces]
        sent = [(one["function"]["name"], one["function"]["arguments"]) for one in pieces]
        if len(set(labels)) == len(labels) == len(actual) and None not in labels:
            return sent == [(name, json.dumps(arguments)) for name, arguments in actual]
    return False


@pytest.mark.parametrize("chosen", CALLS)
@pytest.mark.parametrize("order", ORDER)
def test_calls_are_read_as_a_person_would_or_not_at_all(order: str, chosen: str) -> None:
    calls = CALLS[chosen]
    wrong = []
    for form in (form for form in FORMS if form.order == order):
        pieces = form.pieces(calls)
        actual = run(read(pieces))
        is_right = actual == calls or (not actual and not form.is_readable)
        if not is_right and not is_exactly(pieces, actual):
            wrong.append((form, actual))
    assert not wrong


class Endpoint(Handler):
    """Streams what the test wants, the events as they are."""

    stream = b""

    def do_POST(self) -> None:
        self.body()
        self.give(self.stream, "text/event-stream")


async def ask(stream: bytes) -> StreamedReply:
    handler = type("Endpoint", (Endpoint,), {"stream": stream})
    with served(handler) as address:
        url = f"{address}/v1"
        # No client from the cache by address: the next server may get the same port.
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            return await call_endpoint(lambda _: client, ModelConfig(name="m", base_url=url), BODY)


SEEN = {path.stem: path.read_bytes() for path in sorted(STREAMS.glob("*.sse"))}


@pytest.mark.parametrize("name", SEEN)
async def test_streams_that_were_seen_elsewhere(name: str) -> None:
    reply = await ask(SEEN[name])
    assert reply.calls == BOTH
    assert reply.finish == "tool_calls"


def events(pieces: list[dict[str, Any]], end: str) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in pieces]
    chunks += [{"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}] * (end == "finish")
    done = b"" if end == "neither" else b"data: [DONE]\n\n"
    return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in chunks) + done


@pytest.mark.parametrize("end", END)
@pytest.mark.parametrize("form", FORMS[:: soak(97, 11)], ids=str)
async def test_a_stream_is_over_when_it_says_so(form: Form, end: str) -> None:
    stream = events(pieces := form.pieces(CALLS["two"]), end)
    calls = read(pieces)
    # Without any end, only whole calls can be known to be a reply.
    if end == "neither" and len(run(calls)) < len(calls):
        with pytest.raises(
            ApplicationError, match=r"neither a finish_reason nor \[DONE\]"
        ) as caught:
            await ask(stream)
        assert (caught.value.type, caught.value.non_retryable) == ("Endpoint", False)
        assert "cannot be reached" not in caught.value.message
    else:
        reply = await ask(stream)
        assert reply.calls == [(name or "unnamed", raw) for name, raw in calls]
        assert reply.finish == "tool_calls"


async def test_the_model_hears_of_calls_that_cannot_be_told_apart() -> None:
    form = Form("zero", "missing", "once", "pieces", "in turns")
    reply = await ask(events(form.pieces(CALLS["two"]), "finish"))
    [(_, raw)] = reply.calls
    with pytest.raises(ToolError, match=r"cannot be told apart.*one call at a time"):
        REGISTRY["read_file"].parse(wrap_unusable_arguments(raw, cut=False))


async def test_a_reply_that_was_cut_at_its_limit_keeps_the_calls_that_were_whole() -> None:
    for index in ("right", "zero", "missing"):
        form = Form(index, "missing", "once", "pieces", "one after the other")
        pieces = form.pieces(CALLS["two"])[:-1]
        stream = events(pieces, "finish").replace(b'"tool_calls"}', b'"length"}')
        calls = (await ask(stream)).calls
        assert [is_json_object(raw) for _, raw in calls] == [True, False]


@pytest.mark.parametrize("names", [("read", "_file"), ("read_file", None), ("read_file", "")])
def test_a_name_in_fragments_is_one_name(names: tuple[str, str | None]) -> None:
    pieces = [{"index": 0, "id": "x", "function": {"name": name}} for name in names]
    pieces.append({"index": 0, "function": {"arguments": '{"path": "a.md"}'}})
    assert read(pieces) == [("read_file", '{"path": "a.md"}')]


def test_two_tools_in_one_place_are_no_fragments() -> None:
    calls = [("list_files", ""), ("read_file", '{"path": "a.md"}')]
    pieces = [
        {"index": 0, "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls
    ]
    assert read(pieces) == [("list_files", "{}"), ("read_file", '{"path": "a.md"}')]


@pytest.mark.parametrize("arguments", [None, "", " ", "null", "{}", {}])
def test_calls_without_arguments_stay_calls(arguments: Any) -> None:
    """This includes two equal calls, if the labels say that they are two."""
    pieces = [
        {"index": n, "id": f"call_{n}", "function": {"name": "list_files", "arguments": arguments}}
        for n in range(2)
    ]
    assert read(pieces) == [("list_files", "{}")] * 2


def test_a_model_that_writes_broken_arguments_spoils_no_other_call() -> None:
    for broken in ('{"path": a.md}', '{"path": "a.md"', '{"path": "a.md"}}', '{"a": 1}{"b": 2}'):
        pieces = []
        for n, text in enumerate([broken, '{"path": "b.md"}']):
            pieces.append({"index": n, "id": f"c{n}", "function": {"name": "read_file"}})
            half = len(text) // 2
            pieces += [
                {"index": n, "function": {"arguments": part}} for part in (text[:half], text[half:])
            ]
        assert read(pieces) == [("read_file", broken), ("read_file", '{"path": "b.md"}')]


def test_long_arguments_in_small_pieces_are_read_quickly() -> None:
    text = json.dumps({"content": 'print({"a": "b"})\n' * soak(5_000, 50_000)})
    parts = [text[n : n + 4] for n in range(0, len(text), 4)]
    first = {"index": 0, "id": "x", "function": {"name": "write_file", "arguments": ""}}
    pieces = [first, *({"index": 0, "function": {"arguments": part}} for part in parts)]
    began = time.process_time()
    assert read(pieces) == [("write_file", text)]
    assert time.process_time() - began < patient(len(parts) * 20e-6)


def test_a_flood_of_calls_is_read_quickly() -> None:
    for count in (60, 5_000):
        call = {"name": "read_file", "arguments": '{"path": "a.md"}'}
        pieces = [{"index": 0, "function": call} for _ in range(count)]
        began = time.process_time()
        assert read(pieces)
        assert time.process_time() - began < patient(2)

"""Forms in which endpoints send a reply by either API: each call is read, and read once."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.job.conversation_calls import MIXED_UP
from activities.model.json_text import is_json_object
from activities.model.reply_stream import StreamedReply
from tests.activities.model.wire_streams import (
    BOTH,
    REASONING,
    Call,
    Event,
    ask_wire,
    chat_chunk,
    chat_chunks,
    damage_events,
    each_event,
    each_item,
    in_sequence,
    number_events,
    output_changed,
    response_events,
    without,
    write_events,
)
from tests.soak import soak

PLAIN = response_events(BOTH)
ARGUMENTS = "function_call_arguments"
DELTA, DONE = f"{ARGUMENTS}.delta", f"{ARGUMENTS}.done"
PLAIN_ITEMS = [event["item"] for event in PLAIN if event["type"].endswith("output_item.done")]
NO_OUTPUT = output_changed(lambda _: [])
ITEM_DONE, ADDED = "output_item.done", "output_item.added"


def dropped(*keys: str) -> Any:
    return each_event(lambda event: {k: v for k, v in event.items() if k not in keys})


def set_all(**values: Any) -> Any:
    return each_event(lambda event: {**event, **{k: v for k, v in values.items() if k in event}})


def renamed_by_event(event: Event) -> Event:
    """Give each event ids of its own, as one endpoint does."""
    number = event["sequence_number"]
    if "item" in event:
        event["item"]["id"] = f"{event['item']['id']}_{number}"
    if "item_id" in event:
        event["item_id"] += f"_{number}"
    return event


def interleaved(events: list[Event]) -> list[Event]:
    """Return the events of all items in turns."""
    first, last = events[0], events[-1]
    groups = [
        [event for event in events if event.get("output_index") == index] for index in range(3)
    ]
    turns = []
    while any(groups):
        turns += [group.pop(0) for group in groups if group]
    return number_events([first, *turns, last])


def emptied(item: Event) -> Event:
    return {**item, "arguments": ""}


RESPONSES: dict[str, Any] = {
    "plain": lambda events: events,
    "an item is done twice": each_event(lambda e: [e, e] if ITEM_DONE in e["type"] else e),
    "an item is done again at the end": lambda e: [*e[:-1], *without(DELTA, DONE, ADDED)(e[1:-1]),
                                                   e[-1]],
    "an item is added twice": each_event(lambda e: [e, e] if ADDED in e["type"] else e),
    "all is told twice": each_event(lambda e: [e, e]),
    "all is told twice, without numbers": in_sequence(
        dropped("sequence_number"), each_event(lambda e: [e, e])
    ),
    "the output tells each item twice": output_changed(lambda items: [*items, *items]),
    "the output is empty": NO_OUTPUT,
    "the output leaves out the reasoning": output_changed(lambda items: items[1:]),
    "the output leaves out a call": output_changed(lambda items: items[:-1]),
    "the output is in another order": output_changed(lambda items: items[::-1]),
    "the output has other ids": each_item(lambda i: {**i, "id": f"x{i['id']}"}, "completed"),
    "the output has no ids": each_item(
        lambda i: {k: v for k, v in i.items() if k not in ("id", "call_id")}, "completed"
    ),
    "the output alone": without("output_item", ARGUMENTS),
    "arguments in their done event alone": in_sequence(
        NO_OUTPUT, without(DELTA), each_item(emptied, "done")
    ),
    "arguments in pieces alone": in_sequence(NO_OUTPUT, without(DONE), each_item(emptied, "done")),
    "arguments in the item alone": in_sequence(NO_OUTPUT, without(ARGUMENTS)),
    "arguments in the output alone": in_sequence(without(ARGUMENTS), each_item(emptied, "done")),
    "arguments in the item when it is added": in_sequence(
        NO_OUTPUT, without(ARGUMENTS, ITEM_DONE),
        each_event(lambda e: {**e, "item": PLAIN_ITEMS[e["output_index"]]} if "item" in e else e),
    ),
    "an empty object stands in the item": in_sequence(
        NO_OUTPUT, each_item(lambda i: {**i, "arguments": "{}"}, "done", "added")
    ),
    "arguments are an object": each_item(
        lambda i: {**i, "arguments": json.loads(i["arguments"])}, "done", "completed"
    ),
    "arguments are a string in a string": in_sequence(without(ARGUMENTS), each_item(
        lambda i: {**i, "arguments": json.dumps(i["arguments"])}, "done", "completed"
    )),
    "no item is done": in_sequence(NO_OUTPUT, without(ITEM_DONE)),
    "no item is done, and no arguments": in_sequence(NO_OUTPUT, without(ITEM_DONE, DONE)),
    "no item is added": in_sequence(NO_OUTPUT, without(ADDED)),
    "the name stands where it is added alone": in_sequence(
        NO_OUTPUT, each_item(lambda i: {k: v for k, v in i.items() if k != "name"}, "done")
    ),
    "ids of each event's own": each_event(renamed_by_event),
    "ids of each event's own, no output": in_sequence(NO_OUTPUT, each_event(renamed_by_event)),
    "one output index for all": set_all(output_index=0),
    "no output index": dropped("output_index"),
    "no item ids in pieces": dropped("item_id"),
    "no sequence numbers": dropped("sequence_number"),
    "one sequence number for all": set_all(sequence_number=0),
    "items in turns": interleaved,
    "items in turns, numbered alike": in_sequence(interleaved, set_all(output_index=0), NO_OUTPUT),
    "events in reverse": lambda events: [*events[-2::-1], events[-1]],
    "one call id for all": each_item(
        lambda i: {**i, "call_id": "call_0"}, "added", "done", "completed"
    ),
    "no call id": each_item(lambda i: {k: v for k, v in i.items() if k != "call_id"},
                            "added", "done", "completed"),
    "the end is called done": each_event(
        lambda e: {**e, "type": e["type"].replace("response.completed", "response.done")}
    ),
}  # fmt: skip
"""What endpoints do to the events of a reply."""
UNENDED = without("response.completed")(PLAIN)
ONE = chat_chunk(tool_calls=[{"index": 0, "id": "x", "function": {
    "name": "read_file", "arguments": '{"path": "a.md"}'}}])  # fmt: skip
OTHER = chat_chunk(tool_calls=[{"index": 1, "id": "y", "function": {
    "name": "read_file", "arguments": '{"path": "b.md"}'}}])  # fmt: skip
FINAL = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}
WHOLE = [*ONE["choices"][0]["delta"]["tool_calls"], *OTHER["choices"][0]["delta"]["tool_calls"]]


def function_call(*parts: str) -> list[Event]:
    named = [{"name": "read_file", "arguments": parts[0]}, *({"arguments": p} for p in parts[1:])]
    return [chat_chunk(function_call=part) for part in named]


def in_choice(number: int, **choice: Any) -> Event:
    return {"choices": [{"index": number, "finish_reason": None, **choice}]}


STREAMS: dict[str, tuple[str, bytes]] = {
    **{name: ("responses", write_events(change(PLAIN))) for name, change in RESPONSES.items()},
    "kinds in the event lines alone": ("responses", b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(
            {key: value for key, value in event.items() if key != "type"}).encode())
        for event in PLAIN
    )),
    "kinds in the data alone": ("responses", write_events(PLAIN, names=False)),
    "[DONE] is its only end": ("responses", write_events(UNENDED, done=True)),
    "[DONE] without an empty line": ("responses", write_events(UNENDED) + b"data: [DONE]"),
    "closed after whole items": ("responses", write_events(UNENDED)),
    "closed after whole arguments": ("responses", write_events(without(ITEM_DONE)(
        [event for event in UNENDED if event.get("output_index") != 0]))),
    "chat": ("chat", write_events(chat_chunks(BOTH), done=True)),
    "chat closed after whole calls": ("chat", write_events(chat_chunks(BOTH)[:-1])),
    "chat closed after its usage": ("chat", write_events([*chat_chunks(BOTH)[:-1], FINAL])),
    "chat, [DONE] alone": ("chat", write_events(chat_chunks(BOTH)[:-1], done=True)),
    "chat, calls told twice": ("chat", write_events([ONE, OTHER, ONE, OTHER], done=True)),
    "chat, each call twice in a row": ("chat", write_events([ONE, ONE, OTHER, OTHER], done=True)),
    "chat, a whole message at the end": ("chat", write_events(
        [*chat_chunks(BOTH), in_choice(0, message={"tool_calls": WHOLE})], done=True)),
    "chat, only a whole message": ("chat", write_events(
        [in_choice(0, message={"tool_calls": WHOLE}, finish_reason="tool_calls")])),
    "chat, a second choice": ("chat", write_events([ONE, OTHER, *(
        in_choice(1, delta={"tool_calls": [{**one, "id": f"z{n}"}]})
        for n, one in enumerate(WHOLE))], done=True)),
    "chat, calls in the second choice": ("chat", write_events([chat_chunk(content="I read."), *(
        in_choice(1, delta={"tool_calls": [one]}) for one in WHOLE)], done=True)),
}  # fmt: skip


def runnable(reply: StreamedReply) -> list[Call]:
    """Return the calls that would run."""
    objects = [(name, json.loads(raw or "{}")) for name, raw in reply.calls
               if is_json_object(raw or "{}")]  # fmt: skip
    return [(name, said) for name, said in objects if MIXED_UP not in said and name != "unnamed"]


@pytest.mark.parametrize("name", STREAMS)
async def test_each_call_is_read_once(name: str) -> None:
    api, stream = STREAMS[name]
    reply = await ask_wire(api, stream)
    in_any_order = name == "the output is in another order"
    assert sorted(map(str, runnable(reply))) == sorted(map(str, BOTH))
    assert runnable(reply) == BOTH or in_any_order
    assert len(reply.calls) == 2
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize("form", ["plain", "an item is done twice", "no item is added",
                                  "the output is empty", "the output alone"])  # fmt: skip
async def test_what_was_told_twice_goes_back_once(form: str) -> None:
    reply = await ask_wire("responses", write_events(RESPONSES[form](PLAIN)))
    assert reply.items == [REASONING, *PLAIN_ITEMS[1:]]


TEXT_FORMS: dict[str, Any] = {
    "plain": lambda events: events,
    "all twice": each_event(lambda e: [e, e]),
    "no output": NO_OUTPUT,
    "pieces alone": in_sequence(NO_OUTPUT, without("output_item", "text.done")),
    "done alone": in_sequence(NO_OUTPUT, without("output_item", "delta")),
    "pieces, and items without content": in_sequence(
        NO_OUTPUT, without("text.done"),
        each_event(lambda e: {**e, "item": {**e["item"], "content": []}}
                   if e.get("item", {}).get("type") == "message" else e)),
    "ids of each event's own": each_event(renamed_by_event),
    "no item ids": dropped("item_id"),
    "no indexes": dropped("output_index", "content_index"),
    "in reverse": lambda events: [*events[-2::-1], events[-1]],
    "the output without ids": output_changed(
        lambda items: [{k: v for k, v in item.items() if k != "id"} for item in items]),
}  # fmt: skip


@pytest.mark.parametrize("form", TEXT_FORMS)
async def test_a_text_is_read_once(form: str) -> None:
    events = TEXT_FORMS[form](response_events([], text="I look at both files."))
    reply = await ask_wire("responses", write_events(events))
    assert (reply.text, reply.calls, reply.finish) == ("I look at both files.", [], "stop")


@pytest.mark.parametrize("parts", [('{"path": "a.md"}',), ('{"path"', ': "a.md"}')])
async def test_the_call_of_an_old_api_is_read(parts: tuple[str, ...]) -> None:
    chunks = [*function_call(*parts), chat_chunk("function_call")]
    assert runnable(await ask_wire("chat", write_events(chunks, done=True))) == BOTH[:1]
    both = [*function_call(*parts), ONE, chat_chunk("tool_calls")]
    assert runnable(await ask_wire("chat", write_events(both, done=True))) == BOTH[:1]


def whole_answers() -> Iterator[tuple[str, str, Any]]:
    message = {"role": "assistant", "content": None, "tool_calls": WHOLE}
    answer = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    yield "plain", "chat", answer
    twice = {**message, "tool_calls": [*WHOLE, *WHOLE]}
    yield "calls told twice", "chat", {"choices": [{"message": twice}]}
    said = {"index": 0, "message": {"role": "assistant", "content": "I read."}}
    yield "calls in a second choice", "chat", {"choices": [said, {"index": 1, "message": message}]}
    whole = PLAIN[-1]["response"]
    yield "plain", "responses", whole
    yield "told twice", "responses", {**whole, "output": [*whole["output"], *whole["output"]]}


@pytest.mark.parametrize(("name", "api", "answer"), list(whole_answers()))
@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_in_one_piece_is_read_once(
    name: str, api: str, answer: Any, *, streamed: bool
) -> None:
    stream = json.dumps(answer).encode()
    reply = await ask_wire(api, stream, "application/json", streamed=streamed)
    assert runnable(reply) == BOTH, name


async def test_a_server_that_always_streams_is_read() -> None:
    for api, events in (("chat", chat_chunks(BOTH)), ("responses", PLAIN)):
        assert runnable(await ask_wire(api, write_events(events), streamed=False)) == BOTH


TORN = [chat_chunk(content="Half a sen")]
FAILURES: dict[str, tuple[str, list[Event], str]] = {
    "an error in a choice": ("chat", [*TORN, in_choice(
        0, delta={}, finish_reason="error", error={"message": "upstream gone"})], "upstream gone"),
    "an error beside a good finish": ("chat", [*TORN, in_choice(
        0, delta={}, finish_reason="stop", error={"message": "upstream gone"})], "upstream gone"),
    **{finish: ("chat", [*TORN, chat_chunk(finish)], finish) for finish in (
        "error", "insufficient_system_resource", "network_error", "abort", "failed", "ERROR")},
    "an error as an event": ("chat", [*TORN, {"type": "error", "message": "no slot"}], "no slot"),
    "an error as an object": ("chat", [*TORN, {"object": "error", "message": "no slot"}],
                              "no slot"),
    "a code and words": ("chat", [*TORN, {"code": 500, "msg": "no slot"}], "no slot"),
    "a status of its own": ("chat", [{"base_resp": {"status_code": 1002, "status_msg": "busy"}}],
                            "busy"),
    "an error in the response": ("responses", [*UNENDED, {"type": "response.completed", "response":
                                 {"status": "completed", "error": {"message": "gone"}}}], "gone"),
    "done, but failed": ("responses", [*UNENDED, {"type": "response.done", "response":
                         {"status": "failed", "error": {"message": "gone"}}}], "gone"),
    "failed without a word": ("responses", [*UNENDED, {"type": "response.failed"}], "failed"),
    "an error event": ("responses", [*UNENDED, {"type": "response.error", "message": "gone"}],
                       "gone"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failed_request_is_never_the_models_turn(name: str) -> None:
    api, events, words = FAILURES[name]
    with pytest.raises(ApplicationError, match=words) as caught:
        await ask_wire(api, write_events(events, done=True))
    assert (caught.value.type, caught.value.non_retryable) == ("Endpoint", False)


@pytest.mark.parametrize("stream", [b'{"error": {"message": "no slot"}}', b'{"detail": "no slot"}'])
async def test_an_error_without_its_status_is_told(stream: bytes) -> None:
    with pytest.raises(ApplicationError, match="no slot"):
        await ask_wire("chat", stream)


@pytest.mark.parametrize("finish", ["max_tokens", "MAX_TOKENS", "model_length"])
async def test_a_cut_reply_is_one_by_whatever_name(finish: str) -> None:
    assert (await ask_wire("chat", write_events([*TORN, chat_chunk(finish)]))).finish == "length"


async def test_a_call_whose_arguments_never_came_is_not_run() -> None:
    events = in_sequence(NO_OUTPUT, without(ITEM_DONE, ARGUMENTS))(PLAIN)
    reply = await ask_wire("responses", write_events(events))
    assert len(reply.calls) == 2
    assert not runnable(reply)


@pytest.mark.parametrize("cut", [2, 3, 4, 5, 9])
async def test_a_stream_that_is_closed_amid_an_item_is_no_reply(cut: int) -> None:
    with pytest.raises(ApplicationError, match="before the reply was complete"):
        await ask_wire("responses", write_events(PLAIN[: cut + 1]))


FUZZED: list[list[Call]] = [
    BOTH,
    [("write_file", {"path": "a.md", "content": "one two three, four"}), ("todo_complete", {})],
    [("todo_complete", {"notes": "done"}), ("todo_complete", {"notes": "done"})],
    [("edit", {"path": "c", "changes": [{"old": "{", "new": "}"}]}), *BOTH],
]


async def read_damaged_stream(seed: int) -> tuple[list[Call], list[Call], bool]:
    """Return the calls that a damaged stream holds, those that would run, and if it was a reply."""
    chance = random.Random(seed)
    calls, api = chance.choice(FUZZED), chance.choice(["chat", "responses"])
    text = chance.choice(["", "I go on."])
    events = chat_chunks(calls, text) if api == "chat" else response_events(calls, text, chance)
    if api == "responses" and chance.random() < 0.4:
        events = NO_OUTPUT(events)
    if api == "responses" and chance.random() < 0.3:
        events = number_events(without(*chance.sample([ITEM_DONE, DONE, ADDED], 2))(events))
    stream = write_events(
        damage_events(events, chance), names=chance.random() < 0.5, done=chance.random() < 0.7
    )
    try:
        ran = runnable(await ask_wire(api, stream))
    except ApplicationError as error:
        assert (error.type, error.non_retryable) == ("Endpoint", False)
        return calls, [], False
    names = Counter(name for name, _ in ran) - Counter(name for name, _ in calls)
    assert not names, f"seed {seed}: {names}"
    # Where no piece of the arguments came, Chat Completions says of a call that it has none.
    ran = [(name, said) for name, said in ran if said or api != "chat"]
    return calls, ran, True


async def test_a_damaged_stream_has_no_call_that_the_model_did_not_make() -> None:
    replies = 0
    for seed in range(soak(500, 100_000)):
        made, ran, is_reply = await read_damaged_stream(seed)
        surplus = Counter(map(str, ran)) - Counter(map(str, made))
        assert not surplus, f"seed {seed}: {surplus}"
        replies += is_reply
    assert replies

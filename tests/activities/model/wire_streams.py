"""Streams of both APIs as endpoints send them: a plain one, and what endpoints do to it."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import httpx2
from openai import AsyncOpenAI

from activities.model.client import call_endpoint
from activities.model.reply_stream import StreamedReply
from config.schema.model_settings import ModelConfig

Event = dict[str, Any]
Call = tuple[str, dict[str, Any]]
BOTH: list[Call] = [("read_file", {"path": "a.md"}), ("read_file", {"path": "b.md"})]
USAGE = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}


async def ask_wire(
    api: str, stream: bytes, kind: str = "text/event-stream", *, streamed: bool = True
) -> StreamedReply:
    """Return the reply that is read from what an endpoint sends."""
    answer = httpx2.Response(200, headers={"content-type": kind}, content=stream)
    client = AsyncOpenAI(
        base_url="http://model/v1",
        api_key="k",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: answer)),
    )
    model = ModelConfig.model_validate({"name": "m", "api": api, "stream": streamed})
    return await call_endpoint(lambda _: client, model, b"{}")


def write_events(events: list[Event], *, names: bool = True, done: bool = False) -> bytes:
    """Return events as a stream; each has its name in an `event` line."""
    lines = [
        (f"event: {event['type']}\n" if names and "type" in event else "")
        + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def cut_text(text: str, chance: random.Random | None = None) -> list[str]:
    """Return a text in pieces."""
    places = [len(text) // 3, 2 * len(text) // 3]
    if chance:
        places = sorted(chance.sample(range(1, len(text)), min(len(text) - 1, 3)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def response_events(
    calls: list[Call], text: str = "", chance: random.Random | None = None
) -> list[Event]:
    """Return the events of a reply in the order of OpenAI's own endpoint."""
    items: list[Event] = [copy.deepcopy(REASONING)]
    events: list[Event] = [{"type": "response.created", "response": {"status": "in_progress"}}]
    events += _around(0, items[0], items[0], [])
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
        where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
        pieces = [
            {"type": "response.output_text.delta", **where, "delta": piece}
            for piece in cut_text(text, chance)
        ]
        pieces.append({"type": "response.output_text.done", **where, "text": text})
        events += _around(1, {**items[1], "content": []}, items[1], pieces)
    for number, (name, arguments) in enumerate(calls):
        raw, place = json.dumps(arguments), len(items)
        where = {"item_id": f"fc_{number}", "output_index": place}
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": name, "arguments": raw, "status": "completed"}  # fmt: skip
        items.append(item)
        kind = "response.function_call_arguments"
        pieces = [
            {"type": f"{kind}.delta", **where, "delta": piece} for piece in cut_text(raw, chance)
        ]
        pieces.append({"type": f"{kind}.done", **where, "arguments": raw})
        added = {**item, "arguments": "", "status": "in_progress"}
        events += _around(place, added, item, pieces)
    whole = {"object": "response", "status": "completed", "model": "m", "output": items,
             "usage": USAGE, "error": None}  # fmt: skip
    events.append({"type": "response.completed", "response": copy.deepcopy(whole)})
    return number_events(events)


def _around(place: int, added: Event, done: Event, pieces: list[Event]) -> list[Event]:
    begins = {"type": "response.output_item.added", "output_index": place, "item": dict(added)}
    ends = {"type": "response.output_item.done", "output_index": place, "item": dict(done)}
    return [begins, *pieces, ends]


def number_events(events: list[Event]) -> list[Event]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def chat_chunks(calls: list[Call], text: str = "") -> list[Event]:
    """Return the chunks of a reply; each call's arguments are cut where a missing piece shows."""
    chunks = [chat_chunk(content=piece) for piece in ([text[:2], text[2:]] if text else [])]
    for number, (name, arguments) in enumerate(calls):
        raw = json.dumps(arguments)
        cut = raw.index('"') + 2 if '"' in raw else 1
        first = {"index": number, "id": f"call_{number}", "type": "function"}
        chunks.append(
            chat_chunk(tool_calls=[first | {"function": {"name": name, "arguments": ""}}])
        )
        chunks += [
            chat_chunk(tool_calls=[{"index": number, "function": {"arguments": piece}}])
            for piece in (raw[:cut], raw[cut:])
        ]
    chunks.append(chat_chunk("tool_calls" if calls else "stop"))
    return chunks


def chat_chunk(finish: str | None = None, **delta: Any) -> Event:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def damage_events(events: list[Event], chance: random.Random) -> list[Event]:
    """Return events of which some are dropped, doubled, moved, or cut off at the end."""
    damaged = list(events)
    for _ in range(chance.randint(1, 4)):
        if not damaged:
            break
        place = chance.randrange(len(damaged))
        match chance.choice(["drop", "double", "later double", "swap", "move", "cut"]):
            case "drop":
                del damaged[place]
            case "double":
                damaged.insert(place, damaged[place])
            case "later double":
                damaged.insert(chance.randrange(place, len(damaged)) + 1, damaged[place])
            case "swap":
                other = chance.randrange(len(damaged))
                damaged[place], damaged[other] = damaged[other], damaged[place]
            case "move":
                damaged.insert(chance.randrange(len(damaged)), damaged.pop(place))
            case "cut":
                damaged = damaged[: place + 1]
    return damaged


Change = Callable[[list[Event]], list[Event]]


def without(*kinds: str) -> Change:
    """Return a change that leaves out events of these kinds."""
    return lambda events: [
        event for event in events if not any(kind in event["type"] for kind in kinds)
    ]


def each_event(change: Callable[[Event], Event | list[Event]]) -> Change:
    """Return a change of each event, of a copy of its own."""

    def change_all(events: list[Event]) -> list[Event]:
        changed: list[Event] = []
        for event in copy.deepcopy(events):
            got = change(event)
            changed += got if isinstance(got, list) else [got]
        return changed

    return change_all


def each_item(change: Callable[[Event], Event], *stages: str) -> Change:
    """Return a change of the calls in events of these stages: added, done, completed."""

    def change_event(event: Event) -> Event:
        stage = event["type"].rpartition(".")[2]
        if stage in stages and event.get("item", {}).get("type") == "function_call":
            event["item"] = change(event["item"])
        if stage in stages and stage == "completed":
            event["response"]["output"] = [
                change(item) if item["type"] == "function_call" else item
                for item in event["response"]["output"]
            ]
        return event

    return each_event(change_event)


def output_changed(change: Callable[[list[Event]], list[Event]]) -> Change:
    """Return a change of the output in the whole reply."""

    def change_event(event: Event) -> Event:
        if event["type"] == "response.completed":
            event["response"]["output"] = change(event["response"]["output"])
        return event

    return each_event(change_event)


def in_sequence(*changes: Change) -> Change:
    def change_all(events: list[Event]) -> list[Event]:
        for change in changes:
            events = change(events)
        return events

    return change_all

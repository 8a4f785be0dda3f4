"""The output items of the Responses API, as the union of everything that describes them.

A stream describes an item in several places: when it is added, in pieces, when a piece is done,
when it is done itself, and in the whole reply at the end. Endpoints leave out, repeat or renumber
some of them. So all is kept until the end, brought together by identity, and each item is read from
the most complete entry. One `call_id` is one call, whatever repeats it how often.
"""

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from activities.job.conversation_calls import MIXED_UP
from activities.model.json_text import (
    EMPTY,
    canonical_json_arguments,
    is_json_object,
    json_arguments_object,
)

CALL, MESSAGE, REASONING = "function_call", "message", "reasoning"


class Stage(IntEnum):
    """How complete an entry is, the most complete first."""

    DONE = 0
    PART_DONE = 1
    FINAL = 2
    PIECE = 3
    ADDED = 4


KINDS: dict[str, tuple[str, Stage, str]] = {
    "response.function_call_arguments.delta": (CALL, Stage.PIECE, "arguments"),
    "response.function_call_arguments.done": (CALL, Stage.PART_DONE, "arguments"),
    "response.output_text.delta": (MESSAGE, Stage.PIECE, "text"),
    "response.output_text.done": (MESSAGE, Stage.PART_DONE, "text"),
    "response.refusal.delta": (MESSAGE, Stage.PIECE, "refusal"),
    "response.refusal.done": (MESSAGE, Stage.PART_DONE, "refusal"),
    "response.content_part.done": (MESSAGE, Stage.PART_DONE, "part"),
    "response.reasoning_text.delta": (REASONING, Stage.PIECE, "content"),
    "response.reasoning_text.done": (REASONING, Stage.PART_DONE, "content"),
    "response.reasoning_summary_text.delta": (REASONING, Stage.PIECE, "summary"),
    "response.reasoning_summary_text.done": (REASONING, Stage.PART_DONE, "summary"),
}
"""Events about a part of an item: the item's type, and where the part belongs."""


@dataclass(slots=True)
class ItemEvent:
    type: str
    stage: Stage
    item: dict[str, Any]
    """The item, or of one of its parts what the event says beside the text."""
    index: int | None
    number: int | None
    """Its `sequence_number`."""
    part: tuple[str, int] = ("", 0)
    """Which part the text is of, and the part's number."""
    text: str = ""
    place: int = 0
    """Place in the final output."""

    @property
    def call_id(self) -> str:
        return _text_of(self.item.get("call_id"))

    @property
    def item_id(self) -> str:
        return _text_of(self.item.get("id"))

    @property
    def is_item(self) -> bool:
        return not self.part[0]


def item_events_of(event: dict[str, Any], kind: str) -> Iterator[ItemEvent]:
    index, number = _number_of(event.get("output_index")), _number_of(event.get("sequence_number"))
    if kind in ("response.output_item.added", "response.output_item.done"):
        if isinstance(item := event.get("item"), dict):
            stage = Stage.DONE if kind.endswith("done") else Stage.ADDED
            yield ItemEvent(str(item.get("type")), stage, item, index, number)
    elif known := KINDS.get(kind):
        item_type, stage, name = known
        if name == "part":
            part = event.get("part")
            part = part if isinstance(part, dict) else {}
            name = "refusal" if part.get("refusal") else "text"
            text = part.get(name)
        else:
            text = event.get("delta") if stage is Stage.PIECE else event.get(name)
            text = event.get("text") if text is None and stage is not Stage.PIECE else text
        if isinstance(text, dict):
            text = json.dumps(text, ensure_ascii=False)
        place = event.get("summary_index" if name == "summary" else "content_index")
        item = {"id": event.get("item_id"), "name": event.get("name")}
        item["call_id"] = event.get("call_id")
        yield ItemEvent(
            item_type, stage, item, index, number, (name, _number_of(place) or 0), _text_of(text)
        )


def item_events_of_output(output: Iterable[object]) -> Iterator[ItemEvent]:
    for place, item in enumerate(output):
        if isinstance(item, dict):
            yield ItemEvent(str(item.get("type")), Stage.FINAL, item, None, None, place=place)


@dataclass
class OutputItem:
    type: str
    item_events: list[ItemEvent] = field(default_factory=list)

    @property
    def index(self) -> int | None:
        return next((entry.index for entry in self.item_events if entry.index is not None), None)

    @property
    def call_ids(self) -> set[str]:
        return {entry.call_id for entry in self.item_events if entry.call_id}

    @property
    def item_ids(self) -> set[str]:
        return {entry.item_id for entry in self.item_events if entry.item_id}

    def read(self, numbers: set[int]) -> dict[str, Any]:
        bodies = sorted(
            (entry for entry in self.item_events if entry.is_item),
            key=lambda entry: entry.stage,
        )
        base: dict[str, Any] = dict(bodies[0].item) if bodies else {"type": self.type}
        if bodies and bodies[0].stage is Stage.ADDED and base.get("status") == "in_progress":
            base["status"] = "completed"
        for key in ("id", "call_id", "name"):
            values = (entry.item.get(key) for entry in [*bodies, *self.item_events])
            if not base.get(key) and (label := next(filter(None, values), None)):
                base[key] = label
        if self.type == CALL:
            base["arguments"] = self._read_arguments(numbers)
        elif self.type == MESSAGE:
            contents = (entry.item.get("content") for entry in bodies)
            base["content"] = next((each for each in contents if _says_something(each)), None) or (
                self._read_parts(numbers)
            )
            base.setdefault("role", "assistant")
        elif self.type == REASONING and not any(
            entry.stage in (Stage.DONE, Stage.FINAL) for entry in bodies
        ):
            base["summary"] = base.get("summary") or self._read_parts(numbers)
        return base

    def is_whole(self, numbers: set[int]) -> bool:
        """Whether it can be seen to be complete without the end of the reply."""
        is_whole_item = any(entry.stage in WHOLE_STAGES for entry in self.item_events)
        if self.type != CALL:
            return is_whole_item
        text = self._read_arguments(numbers)
        is_filled = is_json_object(text) and text != EMPTY
        return MIXED_UP not in text and (is_filled or (is_whole_item and text == EMPTY))

    def _read_arguments(self, numbers: set[int]) -> str:
        """Return the arguments of a call: an object that says something counts before another."""
        texts: list[str] = []
        for stage in Stage:
            if stage is Stage.PIECE:
                pieces, is_sound = self._join_pieces(("arguments", 0), numbers)
                texts.append(pieces if is_sound or not pieces else _mixed_up(pieces))
            else:
                texts += [
                    _arguments_text(entry) for entry in self.item_events if entry.stage is stage
                ]
        for text in texts:
            if is_json_object(read := json_arguments_object(text)) and read != EMPTY:
                return read
        # What is only the beginning of `{}` does not contradict it.
        broken = (text for text in texts if not EMPTY.startswith(text.strip()) and text != "null")
        if text := next(broken, ""):
            return text
        if any(entry.stage in WHOLE_STAGES for entry in self.item_events):
            return EMPTY
        return _mixed_up("")

    def _read_parts(self, numbers: set[int]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for part in sorted({entry.part for entry in self.item_events if not entry.is_item}):
            done = [
                entry.text
                for entry in self.item_events
                if entry.part == part and entry.stage is Stage.PART_DONE and entry.text
            ]
            text = done[0] if done else self._join_pieces(part, numbers)[0]
            if part[0] == "refusal":
                parts.append({"type": "refusal", "refusal": text})
            else:
                kind = {"text": "output_text", "summary": "summary_text"}.get(part[0], "text")
                parts.append({"type": kind, "text": text, "annotations": []})
        return parts

    def _join_pieces(self, part: tuple[str, int], events: set[int]) -> tuple[str, bool]:
        """Return the pieces of a part in order, and whether none is known to be missing."""
        pieces = [
            entry
            for entry in self.item_events
            if entry.part[0] == part[0] and entry.part[1] == part[1] and entry.stage is Stage.PIECE
        ]
        by_number: dict[int | None, str] = {
            entry.number: entry.text for entry in pieces if entry.number is not None
        }
        is_numbered = len(by_number) > 1 or len(pieces) == 1
        if not is_numbered or any(by_number.get(entry.number) != entry.text for entry in pieces):
            return "".join(entry.text for entry in pieces), True
        numbers = sorted(number for number in by_number if number is not None)
        is_sound = (
            all(number in events for number in range(numbers[0], numbers[-1])) if events else True
        )
        return "".join(by_number[number] for number in numbers), is_sound


WHOLE_STAGES = frozenset({Stage.DONE, Stage.PART_DONE, Stage.FINAL})


def collect_items(item_events: list[ItemEvent]) -> list[OutputItem]:
    items: dict[Hashable, OutputItem] = {}
    identity = _Identity(item_events)
    streamed = [entry for entry in item_events if entry.stage is not Stage.FINAL]
    for entry in sorted(streamed, key=lambda entry: not entry.is_item):
        if (key := identity.key_of(entry)) is not None:
            items.setdefault(key, OutputItem(entry.type)).item_events.append(entry)
    joined = list(items.values())
    used_places: set[int] = set()
    for entry in (entry for entry in item_events if entry.stage is Stage.FINAL):
        place = _place_of_final(entry, joined, used_places, identity.shared)
        if place is None:
            place = len(joined)
            joined.append(OutputItem(entry.type))
        used_places.add(place)
        joined[place].item_events.append(entry)
    indexes = [item.index for item in joined]
    if None not in indexes and len(set(indexes)) == len(indexes):
        joined.sort(key=lambda item: item.index or 0)
    return joined


class _Identity:
    """Which labels distinguish the items."""

    def __init__(self, item_events: list[ItemEvent]) -> None:
        bodies = [entry for entry in item_events if entry.is_item]
        said: dict[str, set[tuple[str, str]]] = {}
        for entry in bodies:
            if entry.type == CALL and entry.call_id and entry.stage in (Stage.DONE, Stage.FINAL):
                text = canonical_json_arguments(json_arguments_object(_arguments_text(entry)))
                if text != EMPTY:
                    said.setdefault(entry.call_id, set()).add((str(entry.item.get("name")), text))
        self.shared = {call_id for call_id, calls in said.items() if len(calls) > 1}
        """Ids under which several calls came, so that they identify none."""
        self._streamed = streamed = [entry for entry in bodies if entry.stage is not Stage.FINAL]
        self._by_index = _group(streamed, lambda entry: entry.index)
        self._indexes = {index for index, group in self._by_index.items() if _is_one_item(group)}
        self._by_item_id = _group(streamed, lambda entry: entry.item_id or None)

    def key_of(self, entry: ItemEvent) -> Hashable | None:
        """Return the identity of an entry's item; None if it may belong to several."""
        if entry.is_item:
            return self._key_of_item(entry)
        if entry.call_id and entry.call_id not in self.shared:
            return "call", entry.call_id
        keys = self._keys(self._by_item_id.get(entry.item_id, []), entry.type)
        if len(keys) != 1:
            keys = self._keys(self._by_index.get(entry.index, []), entry.type) or keys
        if len(keys) == 1:
            return next(iter(keys))
        if keys:
            return None
        if entry.item_id or entry.index is not None:
            return entry.type, entry.index if entry.index is not None else entry.item_id
        keys = self._keys(self._streamed, entry.type)
        return next(iter(keys)) if len(keys) == 1 else None if keys else (entry.type,)

    def _keys(self, bodies: Iterable[ItemEvent], item_type: str) -> set[Hashable]:
        return {self._key_of_item(body) for body in bodies if body.type == item_type}

    def _key_of_item(self, entry: ItemEvent) -> Hashable:
        if entry.call_id and entry.call_id not in self.shared:
            return "call", entry.call_id
        where = entry.index if entry.index in self._indexes else entry.item_id or entry.index
        if entry.stage is Stage.FINAL:
            where = entry.item_id or f"place {entry.place}"
        if where is None:
            # Without any label, only what it says distinguishes it.
            where = json.dumps(entry.item, sort_keys=True)
        return (entry.type, entry.call_id, where) if entry.call_id else (entry.type, where)


def _is_one_item(group: list[ItemEvent]) -> bool:
    """Whether item_events of one output index are of one item: some endpoints number all alike."""
    if len({entry.type for entry in group}) > 1:
        return False
    if len({entry.call_id for entry in group if entry.call_id}) > 1:
        return False
    return all(
        len({entry.item_id for entry in group if entry.item_id and entry.stage is stage}) < 2
        for stage in (Stage.ADDED, Stage.DONE)
    )


def _place_of_final(
    entry: ItemEvent, items: list[OutputItem], used_places: set[int], shared: set[str]
) -> int | None:
    """Return which item of the whole reply stands here; None if it is another one."""
    own_ids = {entry.call_id} - shared - {""}
    alike = [
        (place, item)
        for place, item in enumerate(items)
        if item.type == entry.type
        and (not entry.call_id or not item.call_ids or entry.call_id in item.call_ids)
    ]
    for place, item in alike:
        if own_ids & item.call_ids or entry.item_id in item.item_ids:
            return place
    others = (
        place for place, item in alike if place not in used_places and _may_be_told_by(item, entry)
    )
    return next(others, None)


def _may_be_told_by(item: OutputItem, entry: ItemEvent) -> bool:
    known = item.read(set())
    if entry.type == CALL:
        mine = canonical_json_arguments(known["arguments"])
        theirs = canonical_json_arguments(json_arguments_object(_arguments_text(entry)))
        is_named_alike = known.get("name") in (None, "", entry.item.get("name"))
        return is_named_alike and (mine == theirs or MIXED_UP in mine)
    if entry.type == MESSAGE:
        mine, theirs = item_message_text(known), item_message_text(entry.item)
        return not theirs or theirs.startswith(mine) or mine.startswith(theirs)
    return True


def item_message_text(message: dict[str, Any]) -> str:
    content = message.get("content") or []
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in content)


def _says_something(content: object) -> bool:
    return isinstance(content, (list, str)) and bool(item_message_text({"content": content}))


def _arguments_text(entry: ItemEvent) -> str:
    if not entry.is_item:
        return entry.text
    arguments = entry.item.get("arguments")
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


def _mixed_up(text: str) -> str:
    return json.dumps({MIXED_UP: text}, ensure_ascii=False)


def _group(item_events: Iterable[ItemEvent], key: Any) -> dict[Any, list[ItemEvent]]:
    groups: dict[Any, list[ItemEvent]] = {}
    for entry in item_events:
        if (value := key(entry)) is not None:
            groups.setdefault(value, []).append(entry)
    return groups


def _number_of(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)

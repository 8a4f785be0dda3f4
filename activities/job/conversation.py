"""The messages of a phase, stored so that adding one costs the same however many there are.

conversation/0000/00 … 0031/31          one JSON message a blob, as it goes on the wire: on shelves,
conversation/0032/00/00 … 0032/31/31    32 to a shelf, and after 32 shelves 32 of them to a case
conversation/0033/00/00 …
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

from activities.checkpoints import Files
from activities.checkpoints.cache import Cache
from activities.checkpoints.folders import FILE, Raw, entries
from activities.checkpoints.objects import EMPTY_TREE
from activities.guards.credentials import hide_in_json
from activities.tokens import of_message

FAN_OUT = 32
CASE = FAN_OUT * FAN_OUT
MALFORMED = "malformed_arguments"
"""Key under which arguments that are no JSON are kept, so that they can be sent back."""
CUT = "arguments_cut_short"
"""The same for those that the output limit cut."""
MIXED_UP = "arguments_mixed_up"
"""The same for those of several calls that an endpoint sent so that nobody can tell them apart."""


held: Cache[Hashable, bytes] = Cache(64_000_000, len)
"""Bytes of messages, of those of a shelf or case, joined, and the like."""
counts: Cache[Hashable, int] = Cache(200_000, lambda _: 1)
"""Numbers of tokens by what is counted and encoding."""

Part = tuple[bytes, int, int, int]
"""Messages that lie together: the id of a message's blob, or of the tree of a shelf or case that is
full; how many messages it holds (1, 32 or 1,024); the first of them and the one after the last."""


class Conversation:
    """An immutable handle on the messages; `append` returns a new one."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def append(self, *messages: dict[str, Any]) -> Conversation:
        """Add messages at the end."""
        files = self.files
        for number, message in enumerate(messages, len(self)):
            blob = files.store.write_blob(on_wire(message))
            files = files.with_raw(_place(number), Raw(FILE, blob))
        return Conversation(files)

    def __len__(self) -> int:
        return self._starts[-1]

    def wire(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Messages as they go on the wire, oldest first: joined by commas, they are the list.

        A shelf or case that is full is one piece, so that a long conversation costs little more
        than copying its bytes.

        Args:
            start: Number of the first.
            stop: Number after the last; None for all.
        """
        return [self._wire(part) for part in self._parts(start, stop)]

    def stored(self) -> Iterator[bytes]:
        """The messages one by one, oldest first; nothing of it is held in memory."""
        for number in range(len(self)):
            yield self._read(number)

    def tokens(self, encoding: str, start: int = 0, stop: int | None = None) -> int:
        """Tokens of those messages; what was counted once is not counted again."""
        return sum(self._tokens(part, encoding) for part in self._parts(start, stop))

    def ids(self, start: int, stop: int) -> tuple[Part, ...]:
        """What names those messages by their content."""
        return tuple(self._parts(start, stop))

    def messages(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Those messages, oldest first."""
        loaded: list[dict[str, Any]] = json.loads(b"[%b]" % b",".join(self.wire(start, stop)))
        return loaded

    def message(self, index: int) -> dict[str, Any]:
        """One message by its number, from 0."""
        loaded: dict[str, Any] = json.loads(self._read(index))
        return loaded

    def calls(self, step: int) -> list[dict[str, Any]]:
        """The tool calls of the reply made at this step, the newest reply there is.

        Raises:
            LookupError: the newest reply is of another step.
        """
        for number in reversed(range(len(self))):
            message = self.message(number)
            if message["role"] == "assistant":
                calls: list[dict[str, Any]] = message.get("tool_calls", [])
                if calls and calls[0]["id"] == call_id(step, 0):
                    return calls
                break
        raise LookupError(f"the conversation holds no reply of step {step}")

    @cached_property
    def _whole(self) -> list[tuple[bytes, int]]:
        """The cases and shelves that are full, and the messages of the last shelf: id and size."""
        *full, last = self._on(bytes.fromhex(self.files.id)) or [EMPTY_TREE]
        sizes = [FAN_OUT] * min(len(full), FAN_OUT) + [CASE] * (len(full) - FAN_OUT)
        if len(full) >= FAN_OUT:
            *shelves, last = self._on(last)
            full += shelves
            sizes += [FAN_OUT] * len(shelves)
        newest = self._on(last)
        return list(zip(full + newest, sizes + [1] * len(newest), strict=True))

    @cached_property
    def _starts(self) -> list[int]:
        """The number of the first message of each of them, and that of all messages."""
        return list(accumulate((size for _, size in self._whole), initial=0))

    def _on(self, tree: bytes) -> list[bytes]:
        """The ids in one tree; the names were made so that they sort in the order of messages."""
        return [raw.id for _, raw in sorted(entries(self.files.store, tree).items())]

    def _parts(self, start: int, stop: int | None) -> list[Part]:
        """The pieces of a range."""
        return _cut(self._whole, self._starts, start, len(self) if stop is None else stop)

    def _within(self, part: Part) -> list[Part]:
        """The pieces of a part of a case or shelf."""
        tree, size, low, high = part
        each = size // FAN_OUT
        pieces = [(piece, each) for piece in self._on(tree)]
        return _cut(pieces, range(0, size + 1, each), low, high)

    def _wire(self, part: Part) -> bytes:
        found = held.get(part)
        if found is None:
            if part[1] == 1:
                found = self.files.store.read(part[0])
            else:
                found = b",".join(map(self._wire, self._within(part)))
            held.keep(part, found)
        return found

    def _tokens(self, part: Part, encoding: str) -> int:
        found = counts.get(key := (part, encoding))
        if found is None:
            if part[1] == 1:
                found = of_message(self.files.store.read(part[0]), encoding)
            else:
                found = sum(self._tokens(piece, encoding) for piece in self._within(part))
            counts.keep(key, found)
        return found

    def _read(self, number: int) -> bytes:
        [part] = self._parts(number, number + 1)
        while part[1] > 1:
            [part] = self._within(part)
        return self.files.store.read(part[0])


def _cut(
    pieces: Sequence[tuple[bytes, int]], starts: Sequence[int], start: int, stop: int
) -> list[Part]:
    """The parts of pieces that lie between two messages."""
    first, after = bisect_right(starts, start) - 1, bisect_left(starts, stop)
    parts = [(one, size, 0, size) for one, size in pieces[first:after]]
    if parts:
        one, size, _, high = parts[0]
        parts[0] = one, size, start - starts[first], high
        one, size, low, high = parts[-1]
        parts[-1] = one, size, low, min(high, stop - starts[after - 1])
    return parts


def _place(number: int) -> tuple[str, ...]:
    shelf, place = divmod(number, FAN_OUT)
    if shelf < FAN_OUT:
        return f"{shelf:04d}", f"{place:02d}"
    case, shelf = divmod(shelf, FAN_OUT)
    return f"{FAN_OUT - 1 + case:04d}", f"{shelf:02d}", f"{place:02d}"


def on_wire(value: Any) -> bytes:
    """A part of a request in the bytes that are sent.

    Files that no tool has shown may hold a credential: they are in the system prompt, and in what
    judges and summaries are asked. Here it is looked for once in each part.
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hide_in_json(written.encode("utf-8", "replace"))


def call_id(step: int, index: int) -> str:
    """Id of a tool call: made from where it stands, so that it is the same in every run."""
    return f"s{step}c{index}"


def tool_result(step: int, index: int, content: str) -> dict[str, Any]:
    """The message that answers a tool call."""
    return {"role": "tool", "tool_call_id": call_id(step, index), "content": content}


def carried_out(conversation: Conversation) -> frozenset[str]:
    """The tools that were carried out since the last todo was completed, refused ones not."""
    fine: set[str] = set()
    found: set[str] = set()
    for number in reversed(range(len(conversation))):
        message = conversation.message(number)
        if message["role"] == "tool" and not str(message["content"]).startswith("Error: "):
            fine.add(message["tool_call_id"])
        names = [c["function"]["name"] for c in message.get("tool_calls", []) if c["id"] in fine]
        if "todo_complete" in names:
            return frozenset(found.union(names[names.index("todo_complete") + 1 :]))
        found.update(names)
    return frozenset(found)


def answered(conversation: Conversation) -> int:
    """How many calls of the newest reply have their result."""
    found = 0
    for number in reversed(range(len(conversation))):
        role = conversation.message(number)["role"]
        if role == "assistant":
            break
        found += role == "tool"
    return found

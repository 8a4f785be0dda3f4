"""The messages of a phase, stored so that adding one costs the same however many there are.

conversation/0000/00 … 31, 0001/00 …      one JSON message a blob, as it goes on the wire
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from activities.checkpoints import Files
from activities.checkpoints.folders import FILE, Raw, entries
from activities.checkpoints.memory import Memory
from activities.tokens import of_message

FAN_OUT = 32
MALFORMED = "malformed_arguments"
"""Key under which arguments that are no JSON are kept, so that they can be sent back."""
CUT = "arguments_cut_short"
"""The same for those that the output limit cut."""


held: Memory[Hashable, bytes] = Memory(64_000_000, len)
"""Bytes of messages by blob id, of those of a shelf, joined, and the like."""
counts: Memory[Hashable, int] = Memory(200_000, lambda _: 1)
"""Numbers of tokens by what is counted and encoding."""

Part = bytes | tuple[bytes, int, int]
"""A message by its blob id, or messages of a shelf that is full: its tree id, the first of them
and the one after them."""


class Conversation:
    """An immutable handle on the messages; `append` returns a new one."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def append(self, *messages: dict[str, Any]) -> Conversation:
        """Add messages at the end."""
        files = self.files
        for number, message in enumerate(messages, len(self)):
            data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "replace"
            )
            files = files.with_raw(_place(number), Raw(FILE, files.store.write_blob(data)))
        return Conversation(files)

    def __len__(self) -> int:
        shelves = self._shelves
        return (len(shelves) - 1) * FAN_OUT + len(self._newest) if shelves else 0

    def wire(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Messages as they go on the wire, oldest first: joined by commas, they are the list.

        A shelf that is full is one piece, so that a long conversation costs little more than
        copying its bytes.

        Args:
            start: Number of the first.
            stop: Number after the last; None for all.
        """
        wire = []
        for part in self._parts(start, stop):
            data = held.get(part)
            if data is None:
                data = held.keep(part, b",".join(map(self._read, self._blobs(part))))
            wire.append(data)
        return wire

    def stored(self) -> Iterator[bytes]:
        """The messages one by one, oldest first; nothing of it is held in memory."""
        for shelf in self._shelves:
            yield from map(self._read, self._on(shelf))

    def tokens(self, encoding: str, start: int = 0, stop: int | None = None) -> int:
        """Tokens of those messages; what was counted once is not counted again."""
        return self._sum(self._parts(start, stop), encoding)

    def ids(self, start: int, stop: int) -> tuple[Part, ...]:
        """What names those messages by their content."""
        return tuple(self._parts(start, stop))

    def messages(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Those messages, oldest first."""
        loaded: list[dict[str, Any]] = json.loads(b"[%b]" % b",".join(self.wire(start, stop)))
        return loaded

    def message(self, index: int) -> dict[str, Any]:
        """One message by its number, from 0."""
        shelf, place = divmod(index, FAN_OUT)
        loaded: dict[str, Any] = json.loads(self._read(self._held(shelf)[place]))
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
    def _shelves(self) -> list[bytes]:
        return self._on(bytes.fromhex(self.files.id))

    @cached_property
    def _newest(self) -> list[bytes]:
        """The messages on the last shelf, the only one that may not be full."""
        return self._on(self._shelves[-1])

    def _held(self, number: int) -> list[bytes]:
        """The messages on the shelf of that number."""
        last = number == len(self._shelves) - 1
        return self._newest if last else self._on(self._shelves[number])

    def _on(self, tree: bytes) -> list[bytes]:
        """The ids in one tree; the names were made so that they sort in the order of messages."""
        return [raw.id for _, raw in sorted(entries(self.files.store, tree).items())]

    def _parts(self, start: int, stop: int | None) -> list[Part]:
        """The pieces of a range; those of the last shelf, which still grows, one by one."""
        parts: list[Part] = []
        last = len(self._shelves) - 1
        for number in range(start // FAN_OUT, last + 1):
            first = number * FAN_OUT
            low = max(start - first, 0)
            high = FAN_OUT if stop is None else min(stop - first, FAN_OUT)
            if high <= low:
                break
            if number < last:
                parts.append((self._shelves[number], low, high))
            else:
                parts += self._newest[low:high]
        return parts

    def _blobs(self, part: Part) -> list[bytes]:
        """The messages of a piece."""
        if isinstance(part, bytes):
            return [part]
        shelf, low, high = part
        return self._on(shelf)[low:high]

    def _sum(self, parts: Sequence[Part], encoding: str) -> int:
        total = 0
        for part in parts:
            found = counts.get(key := (part, encoding))
            if found is None:
                if isinstance(part, bytes):
                    found = of_message(self._read(part), encoding)
                else:
                    found = self._sum(self._blobs(part), encoding)
                counts.keep(key, found)
            total += found
        return total

    def _read(self, blob: bytes) -> bytes:
        return self.files.store.read(blob)


def _place(number: int) -> tuple[str, str]:
    shelf, place = divmod(number, FAN_OUT)
    return f"{shelf:04d}", f"{place:02d}"


def on_wire(value: Any) -> bytes:
    """A part of a request in the bytes that are sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


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

"""The messages of a phase, stored so that adding one costs the same however many there are.

conversation/0000/00 … 31, 0001/00 …      one JSON message a blob, as it goes on the wire
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from functools import cached_property, partial
from threading import Lock
from typing import Any

from activities.checkpoints import Files
from activities.checkpoints.folders import FILE, Raw, entries
from activities.tokens import of_message

FAN_OUT = 32
MALFORMED = "malformed_arguments"
"""Key under which arguments that are no JSON are kept, so that they can be sent back."""
CUT = "arguments_cut_short"
"""The same for those that the output limit cut."""


class _Bytes:
    """Message bytes by blob id, those of whole shelves, joined, by tree id, and the like.

    Content-addressed, so an entry can never be stale.
    """

    def __init__(self, limit_bytes: int = 64_000_000) -> None:
        self._entries: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._limit = limit_bytes
        self._lock = Lock()

    def get(self, key: Hashable, load: Callable[[], bytes]) -> bytes:
        with self._lock:
            if (data := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return data
        data = load()
        with self._lock:
            if key not in self._entries:
                self._entries[key] = data
                self._size += len(data)
                while self._size > self._limit:
                    _, dropped = self._entries.popitem(last=False)
                    self._size -= len(dropped)
        return data


class _Counts:
    """Token counts by object ids and encoding; like the bytes, they can never be stale."""

    def __init__(self, limit: int = 200_000) -> None:
        self._entries: dict[Hashable, int] = {}
        self._limit = limit

    def get(self, key: Hashable, count: Callable[[], int]) -> int:
        found = self._entries.get(key)
        if found is None:
            found = count()
            if len(self._entries) >= self._limit:
                self._entries.clear()
            self._entries[key] = found
        return found


held = _Bytes()
counts = _Counts()


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
        return [
            held.get(oid, partial(self._joined if is_shelf else self._read, oid))
            for oid, is_shelf in self._parts(start, stop)
        ]

    def stored(self) -> Iterator[bytes]:
        """The messages one by one, oldest first; nothing of it is held in memory."""
        for shelf in self._shelves:
            yield from map(self._read, self._on(shelf))

    def tokens(self, encoding: str, start: int = 0, stop: int | None = None) -> int:
        """Tokens of those messages; what was counted once is not counted again."""
        return sum(
            self._shelf_tokens(oid, encoding) if is_shelf else self._message_tokens(oid, encoding)
            for oid, is_shelf in self._parts(start, stop)
        )

    def ids(self, start: int, stop: int) -> tuple[bytes, ...]:
        """What names those messages by their content."""
        return tuple(oid for oid, _ in self._parts(start, stop))

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

    def _parts(self, start: int, stop: int | None) -> Iterator[tuple[bytes, bool]]:
        """The pieces of a range: ids of whole shelves before the last (True), of messages."""
        last = len(self._shelves) - 1
        for number in range(start // FAN_OUT, last + 1):
            first = number * FAN_OUT
            low, high = max(start - first, 0), FAN_OUT if stop is None else stop - first
            if high <= 0:
                return
            if low == 0 and high >= FAN_OUT and number < last:
                yield self._shelves[number], True
            else:
                for blob in self._held(number)[low:high]:
                    yield blob, False

    def _message_tokens(self, blob: bytes, encoding: str) -> int:
        return counts.get((blob, encoding), lambda: of_message(self._read(blob), encoding))

    def _shelf_tokens(self, shelf: bytes, encoding: str) -> int:
        def total() -> int:
            return sum(self._message_tokens(blob, encoding) for blob in self._on(shelf))

        return counts.get((shelf, encoding), total)

    def _joined(self, shelf: bytes) -> bytes:
        return b",".join(self._read(blob) for blob in self._on(shelf))

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

"""The messages of a phase, stored so that adding one costs the same however many there are.

conversation/0000/00 … 31, 0001/00 …      one JSON message a blob, as it goes on the wire
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from activities.checkpoints import Files
from activities.checkpoints.folders import FILE, Raw, entries
from activities.checkpoints.objects import EMPTY_TREE

FAN_OUT = 32
MALFORMED = "malformed_arguments"
"""Key under which arguments that are no JSON are kept, so that they can be sent back."""


class _Cache:
    """Message bytes by blob id, and those of whole shelves, joined, by tree id.

    Content-addressed, so an entry can never be stale.
    """

    def __init__(self, limit_bytes: int = 64_000_000) -> None:
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0
        self._limit = limit_bytes
        self._lock = Lock()

    def get(self, oid: bytes, load: Callable[[bytes], bytes]) -> bytes:
        with self._lock:
            if (data := self._entries.get(oid)) is not None:
                self._entries.move_to_end(oid)
                return data
        data = load(oid)
        with self._lock:
            if oid not in self._entries:
                self._entries[oid] = data
                self._size += len(data)
                while self._size > self._limit:
                    _, dropped = self._entries.popitem(last=False)
                    self._size -= len(dropped)
        return data


_cache = _Cache()


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
            files = files.with_raw(_parts(number), Raw(FILE, files.store.write_blob(data)))
        return Conversation(files)

    def __len__(self) -> int:
        shelves = self._shelves()
        return (len(shelves) - 1) * FAN_OUT + len(self._on(shelves[-1])) if shelves else 0

    def wire(self) -> list[bytes]:
        """The messages as they go on the wire, oldest first: joined by commas, they are the list.

        A shelf that is full is one piece, so that a long conversation costs little more than
        copying its bytes.
        """
        *full, last = self._shelves() or [EMPTY_TREE]
        pieces = [_cache.get(shelf, self._joined) for shelf in full]
        return pieces + [_cache.get(blob, self._read) for blob in self._on(last)]

    def messages(self) -> list[dict[str, Any]]:
        """Every message, oldest first."""
        loaded: list[dict[str, Any]] = json.loads(b"[%b]" % b",".join(self.wire()))
        return loaded

    def message(self, index: int) -> dict[str, Any]:
        """One message by its number, from 0."""
        shelf, place = divmod(index, FAN_OUT)
        loaded: dict[str, Any] = json.loads(self._read(self._on(self._shelves()[shelf])[place]))
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

    def _shelves(self) -> list[bytes]:
        return self._on(bytes.fromhex(self.files.id))

    def _on(self, tree: bytes) -> list[bytes]:
        """The ids in one tree; the names were made so that they sort in the order of messages."""
        return [raw.id for _, raw in sorted(entries(self.files.store, tree).items())]

    def _joined(self, shelf: bytes) -> bytes:
        return b",".join(self._read(blob) for blob in self._on(shelf))

    def _read(self, blob: bytes) -> bytes:
        return self.files.store.read(blob)


def _parts(number: int) -> tuple[str, str]:
    shelf, place = divmod(number, FAN_OUT)
    return f"{shelf:04d}", f"{place:02d}"


def call_id(step: int, index: int) -> str:
    """Id of a tool call: made from where it stands, so that it is the same in every run."""
    return f"s{step}c{index}"


def tool_result(step: int, index: int, content: str) -> dict[str, Any]:
    """The message that answers a tool call."""
    return {"role": "tool", "tool_call_id": call_id(step, index), "content": content}

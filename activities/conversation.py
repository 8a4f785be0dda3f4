"""The messages of a phase, stored so that adding one costs the same however many there are.

conversation/0000/00 … 31, 0001/00 …      one JSON message a blob, as it goes on the wire
"""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import Lock
from typing import Any

from activities.checkpoints import Entry, Files

FAN_OUT = 32
MALFORMED = "malformed_arguments"
"""Key under which arguments that are no JSON are kept, so that they can be sent back."""


class _Cache:
    """Message bytes by blob id. Content-addressed, so an entry can never be stale."""

    def __init__(self, limit_bytes: int = 64_000_000) -> None:
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._limit = limit_bytes
        self._lock = Lock()

    def get(self, files: Files, entry: Entry) -> bytes:
        with self._lock:
            if (data := self._entries.get(entry.id)) is not None:
                self._entries.move_to_end(entry.id)
                return data
        data = files.read(entry.path)
        with self._lock:
            if entry.id not in self._entries:
                self._entries[entry.id] = data
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
            files = files.write(_path(number), data)
        return Conversation(files)

    def __len__(self) -> int:
        shelves = self.files.children()
        if not shelves:
            return 0
        return (len(shelves) - 1) * FAN_OUT + len(self.files.children(shelves[-1].path))

    def wire(self) -> list[bytes]:
        """Every message as it goes on the wire, oldest first."""
        return [_cache.get(self.files, entry) for entry in self.files.walk()]

    def messages(self) -> list[dict[str, Any]]:
        """Every message, oldest first."""
        return [json.loads(data) for data in self.wire()]

    def message(self, index: int) -> dict[str, Any]:
        """One message by its number, from 0."""
        loaded: dict[str, Any] = json.loads(self.files.read(_path(index)))
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


def _path(number: int) -> str:
    shelf, place = divmod(number, FAN_OUT)
    return f"{shelf:04d}/{place:02d}"


def call_id(step: int, index: int) -> str:
    """Id of a tool call: made from where it stands, so that it is the same in every run."""
    return f"s{step}c{index}"


def tool_result(step: int, index: int, content: str) -> dict[str, Any]:
    """The message that answers a tool call."""
    return {"role": "tool", "tool_call_id": call_id(step, index), "content": content}

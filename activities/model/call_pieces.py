"""The pieces of tool calls that an endpoint streams, and the call that they add up to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from activities.model.json_text import (
    GrowingJsonText,
    begins_json_value,
    is_json_object,
    json_arguments_object,
)
from activities.text.safe_text import replace_surrogates

ToolNames = Callable[[], frozenset[str]]
"""Returns the names of the tools in the request."""


@dataclass(slots=True)
class Piece:
    index: int | None
    id: str
    name: str
    arguments: str
    extra: dict[str, Any] | None = None

    @classmethod
    def parse(cls, item: dict[str, Any]) -> Piece:
        """Parse one item of `tool_calls`. Raises one of `MALFORMED_ERRORS` (reply_stream.py)."""
        function = item.get("function") or {}
        index, identity = item.get("index"), item.get("id")
        name, arguments = function.get("name") or "", function.get("arguments")
        if not isinstance(name, str):
            raise TypeError("the name of a call is no text")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        extra = item.get("extra_content")
        return cls(
            index if isinstance(index, int) else None,
            str(identity) if isinstance(identity, (str, int)) else "",
            replace_surrogates(name) if name.strip() else "",
            replace_surrogates(arguments or ""),
            extra if isinstance(extra, dict) else None,
        )


@dataclass
class CallPieces:
    name: str = ""
    text: GrowingJsonText = field(default_factory=GrowingJsonText)
    ids: set[str] = field(default_factory=set)
    indexes: set[int] = field(default_factory=set)
    extra: dict[str, Any] | None = None
    key: object = None
    """Their common label, if they were grouped by one."""
    named_pieces: int = 0
    nameless_pieces: int = 0
    is_patched: bool = False
    restarts: int = 0
    """Number of named pieces that, in the middle of the arguments, look like their beginning."""

    def add(self, piece: Piece) -> None:
        if piece.arguments:
            self.restarts += bool(
                piece.name and not self.text.is_empty and begins_json_value(piece.arguments)
            )
            self.named_pieces += bool(piece.name)
            self.nameless_pieces += not piece.name
        # Some endpoints repeat the name with each piece, others send it in fragments.
        self.name += piece.name if piece.name != self.name else ""
        self.text.add(piece.arguments)
        self.ids |= {piece.id} if piece.id else set()
        self.indexes |= {piece.index} if piece.index is not None else set()
        self.extra = piece.extra or self.extra

    def absorb(self, rest: CallPieces) -> None:
        self.name = self.name or rest.name
        self.ids |= rest.ids
        self.indexes |= rest.indexes
        self.text.add(str(rest.text))
        self.nameless_pieces += 1
        self.is_patched = True

    def is_over_before(self, piece: Piece, tools: ToolNames) -> bool:
        """Whether a piece with this call's label begins another call."""
        if piece.name and self.name and piece.name != self.name:
            if not self.text.is_empty or (piece.id and self.ids and piece.id not in self.ids):
                return True
            return {self.name, piece.name} <= tools()
        if piece.arguments and begins_json_value(piece.arguments):
            return self.text.is_whole
        # A late name belongs to the arguments before it.
        return bool(piece.name and self.name) and self.text.is_whole

    @property
    def is_open(self) -> bool:
        return not (self.name and self.text.is_whole)

    @property
    def arguments(self) -> str:
        return json_arguments_object(str(self.text))

    @property
    def is_sound(self) -> bool:
        return bool(
            self.name
            and is_json_object(self.arguments)
            and not (self.restarts and self.named_pieces > 1 and self.nameless_pieces)
        )

"""Reasoning in a reply of Chat Completions, in fields outside the protocol.

`reasoning_content` and `reasoning` are text. `reasoning_details` (OpenRouter) and `thinking_blocks`
(LiteLLM) are lists whose entries are signed or encrypted, and must go back unchanged. Entries that
a stream splits are joined here.
"""

from __future__ import annotations

import json
from typing import Any

from activities.text.safe_text import replace_surrogates

TEXTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
BLOCKS = "thinking_blocks"
GROWING = ("text", "summary")
"""Keys of an entry whose value arrives in pieces."""
MAX_CHARACTERS = 500_000
"""Most characters kept to be sent back."""


class ReplyReasoning:
    """The reasoning of one reply, as received so far."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._blocks: list[dict[str, Any]] = []

    def add(self, delta: dict[str, Any]) -> None:
        """Add a piece of a stream, or a whole message."""
        for name in TEXTS:
            if isinstance(piece := delta.get(name), str):
                self._texts.setdefault(name, []).append(piece)
        for entry in delta.get(DETAILS) or []:
            self._add_detail(entry)
        for block in delta.get(BLOCKS) or []:
            self._add_block(block)

    @property
    def text(self) -> str:
        """Return the readable part."""
        for name in TEXTS:
            if name in self._texts:
                return "".join(self._texts[name])
        return ""

    def message_fields(self) -> dict[str, Any]:
        """Return the fields to send back; also empty texts, which some endpoints want back."""
        fields: dict[str, Any] = {name: "".join(text) for name, text in self._texts.items()}
        if self._details:
            fields[DETAILS] = self._details
        # A block without its signature is refused.
        if signed := [block for block in self._blocks if block.get("signature") or "data" in block]:
            fields[BLOCKS] = signed
        written = replace_surrogates(json.dumps(fields, ensure_ascii=False))
        return dict(json.loads(written)) if len(written) <= MAX_CHARACTERS else {}

    def _add_detail(self, entry: dict[str, Any]) -> None:
        last = self._details[-1] if self._details else {}
        goes_on = (
            any(isinstance(entry.get(key), str) for key in (*GROWING, "signature"))
            and all(last.get(key) == entry.get(key) for key in ("type", "index"))
            and not last.get("signature")
        )
        if not goes_on:
            self._details.append(dict(entry))
            return
        for key, value in entry.items():
            if key in GROWING and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value

    def _add_block(self, block: dict[str, Any]) -> None:
        last = self._blocks[-1] if self._blocks else {}
        if block.get("type") != "thinking" or not last or last.get("signature") or "data" in last:
            self._blocks.append(dict(block))
            return
        before, piece = last.get("thinking") or "", block.get("thinking") or ""
        # With its signature, a block may be repeated whole.
        last["thinking"] = piece if before and piece.startswith(before) else before + piece
        last["signature"] = block.get("signature") or last.get("signature")

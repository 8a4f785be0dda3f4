"""A reply of Chat Completions, as far as its chunks have come."""

import json
from dataclasses import dataclass, field
from typing import Any

from activities.job.conversation_calls import MIXED_UP
from activities.model.call_assembly import (
    ReadCall,
    assemble_call_pieces,
    convert_pieces_to_calls,
)
from activities.model.call_pieces import Piece
from activities.model.endpoint_wordings import CUT_FINISHES
from activities.model.json_text import EMPTY, is_json_object
from activities.model.wire_reply import EMPTY_STREAM, WireReply
from activities.text.safe_text import replace_surrogates

TEXTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
BLOCKS = "thinking_blocks"
GROWING = ("text", "summary")
"""Keys of an entry whose value arrives in pieces."""
MAX_CHARACTERS = 500_000
"""Most characters kept to be sent back."""


class ReplyReasoning:
    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._blocks: list[dict[str, Any]] = []

    def add(self, delta: dict[str, Any]) -> None:
        for name in TEXTS:
            if isinstance(piece := delta.get(name), str):
                self._texts.setdefault(name, []).append(piece)
        for entry in delta.get(DETAILS) or []:
            self._add_detail(entry)
        for block in delta.get(BLOCKS) or []:
            self._add_block(block)

    @property
    def text(self) -> str:
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


UNENDED = (
    "the stream ended with neither a finish_reason nor [DONE], as one that was cut. If it always "
    "does, model.stream=false asks for replies in one piece"
)


@dataclass
class ChatReply(WireReply):
    prompt_count = "prompt_tokens"
    texts: list[str] = field(default_factory=list)
    reasoning: ReplyReasoning = field(default_factory=ReplyReasoning)
    pieces: dict[object, list[Piece]] = field(default_factory=dict)
    """Pieces of tool calls, by the choice in which they came."""
    function_pieces: list[Piece] = field(default_factory=list)
    """The call in the place where the API once had its only one."""
    is_whole: bool = False
    """Whether each piece is one call."""
    is_closed: bool = False
    has_final_usage: bool = False
    """Whether the tokens came in a chunk of their own, which is the last one."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    """Whole messages that a stream repeats."""

    def add(self, event: dict[str, Any], name: str = "") -> None:
        choices = event.get("choices")
        self.usage = event.get("usage") or self.usage
        self.model = event.get("model") or self.model
        self.has_final_usage |= bool(event.get("usage")) and choices == []
        for choice in choices or []:
            self._note_finish(choice.get("finish_reason"))
            self._add_delta(choice.get("delta") or {}, choice.get("index"))
            if message := choice.get("message"):
                self.messages.append(message)

    def add_whole(self, answer: dict[str, Any]) -> None:
        self.is_whole = True
        choices = answer["choices"]
        self.add({key: value for key, value in answer.items() if key != "choices"})
        self._note_finish(choices[0].get("finish_reason"))
        for choice in choices:
            self._add_delta(choice["message"] or {}, choice.get("index"))

    def _note_finish(self, finish: object) -> None:
        if finish:
            text = str(finish)
            self.finish = "length" if text.lower() in CUT_FINISHES else text

    def _add_delta(self, delta: dict[str, Any], place: object) -> None:
        if self.is_whole and self.texts and (delta.get("content") or delta.get("refusal")):
            # The text of another choice is another reply.
            delta = {**delta, "content": None, "refusal": None}
        self.is_refusal = self.is_refusal or bool(delta.get("refusal"))
        if content := delta.get("content") or delta.get("refusal"):
            self.texts.append(content if isinstance(content, str) else _join_text_parts(content))
        self.reasoning.add(delta)
        if calls := delta.get("tool_calls"):
            self.pieces.setdefault(place, []).extend(map(Piece.parse, calls))
        if call := delta.get("function_call"):
            self.function_pieces.append(Piece.parse({"function": call}))

    def end_stream(self) -> None:
        super().end_stream()
        self._take_repeated_message()

    def close(self) -> None:
        self._take_repeated_message()
        calls = self.read_calls(frozenset())
        are_whole = bool(calls) and all(
            call.name and
            is_json_object(call.arguments) and call.arguments != EMPTY
            and MIXED_UP not in call.arguments for call in calls
        )  # fmt: skip
        self.is_closed = are_whole or (self.has_final_usage and (bool(calls) or bool(self.texts)))

    def _take_repeated_message(self) -> None:
        """Take from a message that stands whole in the stream what the deltas did not bring."""
        if not self.messages:
            return
        message = self.messages[-1]
        if not self.texts:
            self._add_delta({**message, "tool_calls": None, "function_call": None}, 0)
        if not self._call_pieces and (calls := message.get("tool_calls")):
            self.is_whole = True
            self.pieces[0] = list(map(Piece.parse, calls))

    @property
    def is_complete(self) -> bool:
        """Some endpoints give no finish reason, only the end of the stream."""
        is_ended = self.is_over or self.is_closed
        says = self.texts or self._call_pieces or self.reasoning.text
        return bool(self.finish or (is_ended and says))

    @property
    def _call_pieces(self) -> list[Piece]:
        """Return the pieces of one choice: those of another belong to another reply."""
        return next(iter(self.pieces.values()), self.function_pieces)

    @property
    def partial_characters(self) -> int:
        pieces = sum(len(piece.arguments) for piece in self._call_pieces)
        return sum(map(len, self.texts)) + pieces + len(self.reasoning.text)

    @property
    def cut_message(self) -> str:
        return EMPTY_STREAM if self.is_over else UNENDED

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning_text(self) -> str:
        return self.reasoning.text

    def fields(self) -> dict[str, Any]:
        return self.reasoning.message_fields()

    def read_calls(self, tools: frozenset[str]) -> list[ReadCall]:
        if self.is_whole:
            return convert_pieces_to_calls(self._call_pieces)
        return assemble_call_pieces(self._call_pieces, lambda: tools)


def _join_text_parts(content: list[dict[str, Any]]) -> str:
    """Return the text of a content in parts; some servers put reasoning beside it."""
    return "".join(part["text"] for part in content if part.get("type") == "text")

"""Assemble tool calls from the pieces in which an endpoint streams them.

The protocol labels each piece with the index of its call, and the first one with id and name. Many
endpoints label differently, so one stream is read in several ways, and the first reading counts in
which every call has a name and complete arguments. If there is none, and it is uncertain which
piece belongs to which call, nothing of the reply is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from activities.job.tool_messages import MIXED_UP
from activities.model.call_pieces import CallPieces, Piece, ToolNames
from activities.model.call_reading_checks import (
    are_calls_filled,
    are_calls_orderly,
    are_calls_sound,
    are_labels_clean,
    are_labels_unique,
    joins_numbered_calls,
    joins_repeated_ids,
)
from activities.model.call_readings import group_by_key, group_by_label, group_in_sequence
from activities.model.json_text import EMPTY, canonical_json_arguments, json_arguments_object

MAX_SHOWN = 2_000
"""Most characters of mixed-up pieces that are sent back to the model."""


class ReadCall(NamedTuple):
    """A call after reading."""

    name: str
    arguments: str
    extra: dict[str, Any] | None = None


def assemble_call_pieces(pieces: Sequence[Piece], tools: ToolNames) -> list[ReadCall]:
    """Return the calls of a reply.

    Args:
        pieces: The pieces in order of arrival.
        tools: Called only if a name may be a fragment.
    """
    if not pieces:
        return []
    by_label = group_by_label(pieces, tools) or []
    if joins_numbered_calls(by_label, pieces):
        by_label = []
    if by_label and are_calls_sound(by_label) and not joins_repeated_ids(by_label, pieces):
        if any(call.text.is_empty for call in by_label) and are_labels_unique(pieces):
            # An endpoint that labels every piece anew may have separated calls from their names.
            in_sequence = group_in_sequence(pieces, tools)
            if in_sequence and are_calls_filled(in_sequence):
                return _finish_calls(in_sequence)
        return _finish_calls(by_label)
    in_sequence = group_in_sequence(pieces, tools) or []
    if joins_numbered_calls(in_sequence, pieces):
        in_sequence = []
    by_id = group_by_key(pieces, [piece.id or None for piece in pieces], tools)
    by_index = group_by_key(pieces, [piece.index for piece in pieces], tools)
    for reading in (by_id, by_index, in_sequence):
        if reading and are_calls_filled(reading):
            return _finish_calls(reading)
    if by_label and are_labels_clean(by_label, pieces):
        return _finish_calls(by_label)
    if in_sequence and are_calls_orderly(in_sequence):
        return _finish_calls(in_sequence)
    return [_call_of_mixed_pieces(pieces)]


def convert_pieces_to_calls(pieces: Iterable[Piece]) -> list[ReadCall]:
    """Return the calls of an unstreamed reply, in which each piece tells of one call."""
    told = [
        (piece.id, ReadCall(piece.name, json_arguments_object(piece.arguments), piece.extra))
        for piece in pieces
    ]
    return _drop_calls_told_twice(told)


def _finish_calls(calls: list[CallPieces]) -> list[ReadCall]:
    told = [
        (
            min(call.ids, default=""),
            ReadCall(call.name, EMPTY if call.text.is_empty else call.arguments, call.extra),
        )
        for call in calls
    ]
    return _drop_calls_told_twice(told)


def _drop_calls_told_twice(told: list[tuple[str, ReadCall]]) -> list[ReadCall]:
    """Return calls without those that say again what a call with the same id said.

    Calls of one id that say different things are several: some endpoints give all the same id.
    """
    seen: dict[tuple[str, str, str], ReadCall] = {}
    for place, (identity, call) in enumerate(told):
        # Without an id, only the place tells a call from an equal one.
        key = identity or f"no id {place}", call.name, canonical_json_arguments(call.arguments)
        seen.setdefault(key, call)
    filled = {(identity, name) for identity, name, arguments in seen if arguments != EMPTY}
    return [
        call
        for (identity, name, arguments), call in seen.items()
        # An empty object under the id of a filled call only announces it.
        if arguments != EMPTY or (identity, name) not in filled
    ]


def _call_of_mixed_pieces(pieces: Sequence[Piece]) -> ReadCall:
    """Return one call in place of all, which is refused when it is run."""
    name = next((piece.name for piece in pieces if piece.name), "")
    return ReadCall(name, json.dumps({MIXED_UP: "".join(_piece_texts(pieces))[:MAX_SHOWN]}))


def _piece_texts(pieces: Sequence[Piece]) -> Iterator[str]:
    for piece in pieces:
        yield f"{piece.name} {piece.arguments}" if piece.name else piece.arguments

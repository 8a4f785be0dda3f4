"""Assemble tool calls from the pieces in which an endpoint streams them.

The protocol labels each piece with the index of its call, and the first one with id and name. Many
endpoints label differently, so one stream is read in several ways, and the first reading counts in
which every call has a name and complete arguments. If there is none, and it is uncertain which
piece belongs to which call, nothing of the reply is run.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from activities.job.conversation_calls import MIXED_UP
from activities.model.call_pieces import CallPieces, Piece, ToolNames
from activities.model.call_readings import group_by_key, group_by_label, group_in_sequence
from activities.model.json_text import EMPTY, canonical_json_arguments, json_arguments_object

MAX_SHOWN = 2_000
"""Most characters of mixed-up pieces that are sent back to the model."""


class ReadCall(NamedTuple):
    name: str
    arguments: str
    extra: dict[str, Any] | None = None


def assemble_call_pieces(pieces: Sequence[Piece], tools: ToolNames) -> list[ReadCall]:
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
    """Return the calls of an unstreamed reply, in which each piece is of one call."""
    reports = [
        (piece.id, ReadCall(piece.name, json_arguments_object(piece.arguments), piece.extra))
        for piece in pieces
    ]
    return _drop_repeated_calls(reports)


def _finish_calls(calls: list[CallPieces]) -> list[ReadCall]:
    reports = [
        (
            min(call.ids, default=""),
            ReadCall(call.name, EMPTY if call.text.is_empty else call.arguments, call.extra),
        )
        for call in calls
    ]
    return _drop_repeated_calls(reports)


def _drop_repeated_calls(reports: list[tuple[str, ReadCall]]) -> list[ReadCall]:
    """Drop calls that only repeat another of their id; some endpoints give all the same id."""
    distinct: dict[tuple[str, str, str], ReadCall] = {}
    for place, (identity, call) in enumerate(reports):
        # Without an id, only its place distinguishes a call from an equal one.
        key = identity or f"no id {place}", call.name, canonical_json_arguments(call.arguments)
        distinct.setdefault(key, call)
    filled = {(identity, name) for identity, name, arguments in distinct if arguments != EMPTY}
    return [
        call
        for (identity, name, arguments), call in distinct.items()
        # An empty object under the id of a filled call only announces it.
        if arguments != EMPTY or (identity, name) not in filled
    ]


def _call_of_mixed_pieces(pieces: Sequence[Piece]) -> ReadCall:
    name = next((piece.name for piece in pieces if piece.name), "")
    texts = (f"{piece.name} {piece.arguments}".removeprefix(" ") for piece in pieces)
    return ReadCall(name, json.dumps({MIXED_UP: "".join(texts)[:MAX_SHOWN]}))


def are_calls_sound(calls: list[CallPieces]) -> bool:
    return all(call.is_sound for call in calls)


def are_calls_filled(calls: list[CallPieces]) -> bool:
    return are_calls_sound(calls) and not any(call.text.is_empty for call in calls)


def joins_repeated_ids(calls: list[CallPieces], pieces: Sequence[Piece]) -> bool:
    """Whether a call has several ids of which one repeats, so that it is two calls."""
    joined = {identity for call in calls if len(call.ids) > 1 for identity in call.ids}
    if not joined:
        return False
    counts = Counter(piece.id for piece in pieces)
    return any(counts[identity] > 1 for identity in joined)


def joins_numbered_calls(calls: list[CallPieces], pieces: Sequence[Piece]) -> bool:
    """Whether a call has pieces with several indexes, though these number calls and not pieces.

    Numbers of pieces only rise.
    """
    joined = {index for call in calls if len(call.indexes) > 1 for index in call.indexes}
    indexes = [piece.index for piece in pieces if piece.index is not None]
    is_rising = all(before <= after for before, after in pairwise(indexes))
    counts = Counter(indexes)
    return bool(joined) and (not is_rising or any(counts[index] > 1 for index in joined))


def are_labels_unique(pieces: Sequence[Piece]) -> bool:
    """Whether no id occurs twice, and no index except one that is equal for all."""
    indexes = [piece.index for piece in pieces if piece.index is not None]
    ids = [piece.id for piece in pieces if piece.id]
    return len(set(ids)) == len(ids) and len(set(indexes)) in (len(indexes), 1)


def are_labels_clean(calls: list[CallPieces], pieces: Sequence[Piece]) -> bool:
    """Whether the protocol's labels show with certainty which piece belongs to which call.

    A malformed call is then the model's mistake and says nothing about the others.
    """
    if len(calls) == 1:
        return not calls[0].restarts
    indexes = [index for call in calls for index in call.indexes]
    ids = [identity for call in calls for identity in call.ids]
    return (
        all(call.name and len(call.ids) < 2 and len(call.indexes) == 1 for call in calls)
        and len(set(indexes)) == len(indexes)
        and len(set(ids)) == len(ids)
        # Otherwise each piece may have a label of its own.
        and not are_labels_unique(pieces)
    )


def are_calls_orderly(calls: list[CallPieces]) -> bool:
    """Whether each call ended before the next began; the last one may be cut."""
    return (
        all(call.name and not call.restarts for call in calls)
        and all(call.text.is_whole for call in calls[:-1])
        and not (len(calls) > 1 and any(call.is_patched for call in calls))
    )

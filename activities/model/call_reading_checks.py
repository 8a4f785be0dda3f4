"""Whether a reading of a stream can be trusted: pure functions of its calls and their pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from activities.model.call_pieces import CallPieces, Piece


def are_calls_sound(calls: list[CallPieces]) -> bool:
    return all(call.is_sound for call in calls)


def are_calls_filled(calls: list[CallPieces]) -> bool:
    """Whether each call is sound, and none is only a name."""
    return are_calls_sound(calls) and not any(call.text.is_empty for call in calls)


def joins_repeated_ids(calls: list[CallPieces], pieces: Sequence[Piece]) -> bool:
    """Whether a call has pieces with several ids of which one repeats.

    Such ids do not change with every piece, so it is two calls.
    """
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

"""The ways in which one stream of pieces is read as calls: by label, by one key, in sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from activities.model.call_pieces import CallPieces, Piece, ToolNames
from activities.model.call_repeats import compare_call_labels, merge_repeated_calls, repeats_call


def group_by_label(pieces: Sequence[Piece], tools: ToolNames) -> list[CallPieces] | None:
    """Group by id where there is one, else by index, else with the incomplete call.

    Returns None if a piece without a label may belong to several calls.
    """
    calls: list[CallPieces] = []
    by_id: dict[str, CallPieces] = {}
    by_index: dict[int, CallPieces] = {}
    for piece in pieces:
        call = by_id.get(piece.id)
        if call is None and piece.index is not None:
            call = by_index.get(piece.index)
        elif call is None:
            candidates = _calls_awaiting_pieces(calls)
            if len(candidates) > 1:
                return None
            call = candidates[0] if candidates else None
        if call is None or call.is_over_before(piece, tools):
            call = CallPieces()
            calls.append(call)
        elif piece.name and _is_name_ambiguous(_calls_with_label(piece, calls, by_id)):
            return None
        call.add(piece)
        if piece.id:
            by_id[piece.id] = call
        if piece.index is not None:
            by_index[piece.index] = call
    calls = merge_repeated_calls(calls, compare_call_labels(calls))
    # Read again, now that it is known which labels carry no information.
    calls = merge_repeated_calls(calls, compare_call_labels(calls))
    if all(call.indexes for call in calls):
        calls.sort(key=lambda call: min(call.indexes))
    return calls


def _calls_with_label(
    piece: Piece, calls: list[CallPieces], by_id: Mapping[str, CallPieces]
) -> list[CallPieces]:
    """Return the calls to which the piece's label may point."""
    if piece.id in by_id:
        return [call for call in calls if piece.id in call.ids]
    if piece.index is not None:
        return [call for call in calls if piece.index in call.indexes]
    return calls


def _is_name_ambiguous(calls: list[CallPieces]) -> bool:
    """Whether a name that comes now may belong to more than one of these calls."""
    nameless = [call for call in calls if not call.name]
    if len(nameless) < 2:
        return False
    named = [call for call in calls if call.name]
    return sum(not any(repeats_call(call, other) for other in named) for call in nameless) > 1


def _calls_awaiting_pieces(calls: list[CallPieces]) -> list[CallPieces]:
    """Return the calls that a piece without a label may continue."""
    candidates = [call for call in calls if call.is_open]
    return [call for call in candidates if not call.text.is_empty] or candidates


def group_by_key(
    pieces: Sequence[Piece], keys: Sequence[object], tools: ToolNames
) -> list[CallPieces] | None:
    """Group strictly by one label; None if a piece has none."""
    calls: list[CallPieces] = []
    newest: dict[object, CallPieces] = {}
    for piece, key in zip(pieces, keys, strict=True):
        if key is None:
            return None
        call = newest.get(key)
        if call is None or call.is_over_before(piece, tools):
            call = newest[key] = CallPieces(key=key)
            calls.append(call)
        elif piece.name and _is_name_ambiguous([other for other in calls if other.key == key]):
            return None
        call.add(piece)
    return merge_repeated_calls(calls, lambda first, second: int(first.key == second.key))


def group_in_sequence(pieces: Sequence[Piece], tools: ToolNames) -> list[CallPieces] | None:
    """Read one call after the other, ignoring labels; None if a name has no place."""
    calls: list[CallPieces] = []
    for piece in pieces:
        if not calls or calls[-1].is_over_before(piece, tools):
            calls.append(CallPieces())
        elif piece.name and _is_name_ambiguous(calls):
            return None
        calls[-1].add(piece)
    return merge_repeated_calls(calls, lambda first, second: 1)

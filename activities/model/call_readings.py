"""The ways in which one stream of pieces is read as calls: by label, by one key, in sequence."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from activities.model.call_pieces import CallPieces, Piece, ToolNames
from activities.model.json_text import (
    EMPTY,
    canonical_json_arguments,
)
from protocol.requests import MAX_CALLS

MAX_COMPARED = 2 * MAX_CALLS
Sameness = Callable[[CallPieces, CallPieces], int]
"""Whether the labels of two calls say that they are the same: yes (2), unknown (1), no (0)."""


def merge_repeated_calls(calls: list[CallPieces], is_same: Sameness) -> list[CallPieces]:
    """Return the calls without those that only repeat, announce or continue another."""
    if len(calls) > MAX_COMPARED:
        return calls
    distinct: list[CallPieces] = []
    for call in _drop_placeholder_calls(calls, is_same):
        earlier = (
            other for other in distinct if is_same(other, call) and repeats_call(call, other)
        )
        if repeated := next(earlier, None):
            repeated.name = repeated.name or call.name
        else:
            distinct.append(call)
    settled: list[CallPieces] = []
    for place, call in enumerate(distinct):
        candidates = _closest_calls(call, settled, is_same)
        if candidates and _continues_call(call, candidates[-1]):
            candidates[-1].absorb(call)
        elif not call.text.is_empty or not any(
            is_same(call, later) and later.name == call.name for later in distinct[place + 1 :]
        ):
            settled.append(call)
    return settled


def _closest_calls(
    call: CallPieces, earlier: list[CallPieces], is_same: Sameness
) -> list[CallPieces]:
    likely = [(candidate, is_same(candidate, call)) for candidate in earlier]
    return [candidate for candidate, how in likely if how == 2] or [
        candidate for candidate, how in likely if how
    ]


def _drop_placeholder_calls(calls: list[CallPieces], is_same: Sameness) -> Iterator[CallPieces]:
    """Return the calls without the empty object that some endpoints put directly before each."""
    for before, call in pairwise([*calls, CallPieces()]):
        is_named_alike = before.name == call.name or not (before.name and call.name)
        if (
            is_named_alike
            and str(before.text) == EMPTY
            and not call.text.is_empty
            and is_same(before, call)
        ):
            call.name = call.name or before.name
            call.ids |= before.ids
            call.indexes |= before.indexes
        else:
            yield before


def repeats_call(call: CallPieces, earlier: CallPieces) -> bool:
    if call.text.is_empty:
        return call.name == earlier.name
    return (
        call.name == earlier.name or not (call.name and earlier.name)
    ) and canonical_json_arguments(call.arguments) == canonical_json_arguments(earlier.arguments)


def _continues_call(call: CallPieces, earlier: CallPieces) -> bool:
    """Whether a call continues complete arguments.

    Without a name it is a model's mistake, and some endpoints put an empty object before arguments.
    """
    is_named_alike = not earlier.name or call.name == earlier.name
    return not call.name or (is_named_alike and str(earlier.text) == EMPTY)


def compare_call_labels(calls: list[CallPieces]) -> Sameness:
    """Compare labels.

    Labels that change within a call, or are equal for all calls, say nothing. If other calls have
    one, a call without a label continues another.
    """
    indexes = {index for call in calls for index in call.indexes}
    has_indexes = len(indexes) > 1 and all(len(call.indexes) < 2 for call in calls)
    has_ids = any(call.ids for call in calls) and all(len(call.ids) < 2 for call in calls)

    def is_same(first: CallPieces, second: CallPieces) -> int:
        labels: list[tuple[set[Any], set[Any]]] = [(first.ids, second.ids)] if has_ids else []
        labels += [(first.indexes, second.indexes)] if has_indexes else []
        if any(mine & others for mine, others in labels):
            return 2
        return int(
            all(not (mine and others) for mine, others in labels)
            or any(bool(mine) != bool(others) for mine, others in labels)
        )

    return is_same


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

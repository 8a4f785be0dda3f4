"""Calls that only repeat, announce or continue another call of the same reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from activities.model.call_pieces import CallPieces
from activities.model.json_text import EMPTY, canonical_json_arguments
from protocol.requests import MAX_CALLS

MAX_COMPARED = 2 * MAX_CALLS
"""Most calls of a reply that are compared with each other to find repeats."""
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
        elif not _announces_later_call(call, distinct[place + 1 :], is_same):
            settled.append(call)
    return settled


def _closest_calls(
    call: CallPieces, earlier: list[CallPieces], is_same: Sameness
) -> list[CallPieces]:
    """Return the calls that it most likely continues."""
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


def _announces_later_call(call: CallPieces, later: list[CallPieces], is_same: Sameness) -> bool:
    """Whether it is only the name of a later call."""
    return call.text.is_empty and any(
        is_same(call, other) and other.name == call.name for other in later
    )


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

"""Assemble tool calls from the pieces in which an endpoint streams them.

The protocol labels each piece with the index of its call, and the first one with id and name. Many
endpoints label differently, so one stream is read in several ways, and the first reading counts in
which every call has a name and complete arguments. If there is none, and it is uncertain which
piece belongs to which call, nothing of the reply is run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from activities.job.conversation import MIXED_UP
from activities.model.json_text import (
    EMPTY,
    GrowingJsonText,
    begins_json_value,
    canonical_json_arguments,
    is_json_object,
    json_arguments_object,
)
from activities.text.safe_text import replace_surrogates
from protocol.requests import MAX_CALLS

MAX_COMPARED = 2 * MAX_CALLS
"""Most calls of a reply that are compared with each other to find repeats."""
MAX_SHOWN = 2_000
"""Most characters of mixed-up pieces that are sent back to the model."""
ToolNames = Callable[[], frozenset[str]]
"""Returns the names of the tools in the request."""


@dataclass(slots=True)
class Piece:
    """What one event says about one call."""

    index: int | None
    id: str
    name: str
    arguments: str
    extra: dict[str, Any] | None = None

    @classmethod
    def parse(cls, item: dict[str, Any]) -> Piece:
        """Parse one item of `tool_calls`.

        Raises one of `MALFORMED_ERRORS` (reply_stream.py) for anything else.
        """
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
    """The pieces of one call."""

    name: str = ""
    text: GrowingJsonText = field(default_factory=GrowingJsonText)
    ids: set[str] = field(default_factory=set)
    indexes: set[int] = field(default_factory=set)
    extra: dict[str, Any] | None = None
    key: object = None
    """Their common label, if they were grouped by one."""
    named_pieces: int = 0
    """Number of pieces with both arguments and the name."""
    nameless_pieces: int = 0
    """Number of pieces with arguments alone."""
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
        """Append a call that turned out to be a part of this one."""
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
        """Whether it has a name and one object, and does not look like two calls in one."""
        return bool(
            self.name
            and is_json_object(self.arguments)
            and not (self.restarts and self.named_pieces > 1 and self.nameless_pieces)
        )


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
    by_label = _group_pieces_by_label(pieces, tools)
    if by_label and _are_call_pieces_sound(by_label) and not _joins_repeated_ids(by_label, pieces):
        if any(call.text.is_empty for call in by_label) and _are_piece_labels_unique(pieces):
            # An endpoint that labels every piece anew may have separated calls from their names.
            in_sequence = _group_pieces_in_sequence(pieces, tools)
            if in_sequence and _are_call_pieces_filled(in_sequence):
                return _join_call_pieces(in_sequence)
        return _join_call_pieces(by_label)
    in_sequence = _group_pieces_in_sequence(pieces, tools)
    by_id = _group_pieces_by_key(pieces, _piece_ids(pieces), tools)
    by_index = _group_pieces_by_key(pieces, _piece_indexes(pieces), tools)
    for reading in (by_id, by_index, in_sequence):
        if reading and _are_call_pieces_filled(reading):
            return _join_call_pieces(reading)
    if by_label and _are_piece_labels_clean(by_label, pieces):
        return _join_call_pieces(by_label)
    if in_sequence and _are_call_pieces_orderly(in_sequence):
        return _join_call_pieces(in_sequence)
    return [_call_of_mixed_pieces(pieces)]


def convert_pieces_to_calls(pieces: Iterable[Piece]) -> list[ReadCall]:
    """Return the calls of an unstreamed reply, in which each piece is one call."""
    return [
        ReadCall(piece.name, json_arguments_object(piece.arguments), piece.extra)
        for piece in pieces
    ]


# Readings


def _group_pieces_by_label(pieces: Sequence[Piece], tools: ToolNames) -> list[CallPieces] | None:
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
        elif piece.name and _is_call_name_piece_ambiguous(
            _calls_with_piece_label(piece, calls, by_id)
        ):
            return None
        call.add(piece)
        if piece.id:
            by_id[piece.id] = call
        if piece.index is not None:
            by_index[piece.index] = call
    calls = _merge_repeated_pieces(calls, _piece_label_comparison(calls))
    # Read again, now that it is known which labels carry no information.
    calls = _merge_repeated_pieces(calls, _piece_label_comparison(calls))
    if all(call.indexes for call in calls):
        calls.sort(key=lambda call: min(call.indexes))
    return calls


def _calls_with_piece_label(
    piece: Piece, calls: list[CallPieces], by_id: Mapping[str, CallPieces]
) -> list[CallPieces]:
    """Return the calls to which the piece's label may point."""
    if piece.id in by_id:
        return [call for call in calls if piece.id in call.ids]
    if piece.index is not None:
        return [call for call in calls if piece.index in call.indexes]
    return calls


def _is_call_name_piece_ambiguous(calls: list[CallPieces]) -> bool:
    """Whether a name that comes now may belong to more than one of these calls."""
    nameless = [call for call in calls if not call.name]
    if len(nameless) < 2:
        return False
    named = [call for call in calls if call.name]
    return (
        sum(not any(_repeats_call_pieces(call, other) for other in named) for call in nameless) > 1
    )


def _calls_awaiting_pieces(calls: list[CallPieces]) -> list[CallPieces]:
    """Return the calls that a piece without a label may continue."""
    candidates = [call for call in calls if call.is_open]
    return [call for call in candidates if not call.text.is_empty] or candidates


def _group_pieces_by_key(
    pieces: Sequence[Piece], keys: list[object], tools: ToolNames
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
        elif piece.name and _is_call_name_piece_ambiguous(
            [other for other in calls if other.key == key]
        ):
            return None
        call.add(piece)
    return _merge_repeated_pieces(calls, lambda first, second: int(first.key == second.key))


def _piece_ids(pieces: Sequence[Piece]) -> list[object]:
    return [piece.id or None for piece in pieces]


def _piece_indexes(pieces: Sequence[Piece]) -> list[object]:
    return [piece.index for piece in pieces]


def _group_pieces_in_sequence(pieces: Sequence[Piece], tools: ToolNames) -> list[CallPieces] | None:
    """Read one call after the other, ignoring labels; None if a name has no place."""
    calls: list[CallPieces] = []
    for piece in pieces:
        if not calls or calls[-1].is_over_before(piece, tools):
            calls.append(CallPieces())
        elif piece.name and _is_call_name_piece_ambiguous(calls):
            return None
        calls[-1].add(piece)
    return _merge_repeated_pieces(calls, lambda first, second: 1)


Sameness = Callable[[CallPieces, CallPieces], int]
"""Whether the labels of two calls say that they are the same: yes (2), unknown (1), no (0)."""


def _merge_repeated_pieces(calls: list[CallPieces], is_same: Sameness) -> list[CallPieces]:
    """Return the calls without those that only repeat, announce or continue another."""
    if len(calls) > MAX_COMPARED:
        return calls
    distinct: list[CallPieces] = []
    for call in _drop_placeholder_pieces(calls, is_same):
        earlier = (
            other
            for other in distinct
            if is_same(other, call) and _repeats_call_pieces(call, other)
        )
        if repeated := next(earlier, None):
            repeated.name = repeated.name or call.name
        else:
            distinct.append(call)
    settled: list[CallPieces] = []
    for place, call in enumerate(distinct):
        candidates = _closest_call_pieces(call, settled, is_same)
        if candidates and _continues_call_pieces(call, candidates[-1]):
            candidates[-1].absorb(call)
        elif not _announces_later_pieces(call, distinct[place + 1 :], is_same):
            settled.append(call)
    return settled


def _closest_call_pieces(
    call: CallPieces, earlier: list[CallPieces], is_same: Sameness
) -> list[CallPieces]:
    """Return the calls that it most likely continues."""
    likely = [(candidate, is_same(candidate, call)) for candidate in earlier]
    return [candidate for candidate, how in likely if how == 2] or [
        candidate for candidate, how in likely if how
    ]


def _drop_placeholder_pieces(calls: list[CallPieces], is_same: Sameness) -> Iterator[CallPieces]:
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


def _repeats_call_pieces(call: CallPieces, earlier: CallPieces) -> bool:
    if call.text.is_empty:
        return call.name == earlier.name
    return (
        call.name == earlier.name or not (call.name and earlier.name)
    ) and canonical_json_arguments(call.arguments) == canonical_json_arguments(earlier.arguments)


def _continues_call_pieces(call: CallPieces, earlier: CallPieces) -> bool:
    """Whether a call continues complete arguments.

    Without a name it is a model's mistake, and some endpoints put an empty object before arguments.
    """
    is_named_alike = not earlier.name or call.name == earlier.name
    return not call.name or (is_named_alike and str(earlier.text) == EMPTY)


def _announces_later_pieces(call: CallPieces, later: list[CallPieces], is_same: Sameness) -> bool:
    """Whether it is only the name of a later call."""
    return call.text.is_empty and any(
        is_same(call, other) and other.name == call.name for other in later
    )


def _piece_label_comparison(calls: list[CallPieces]) -> Sameness:
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


# Verdicts on a reading


def _are_call_pieces_sound(calls: list[CallPieces]) -> bool:
    return all(call.is_sound for call in calls)


def _are_call_pieces_filled(calls: list[CallPieces]) -> bool:
    """Whether each call is sound, and none is only a name."""
    return _are_call_pieces_sound(calls) and not any(call.text.is_empty for call in calls)


def _joins_repeated_ids(calls: list[CallPieces], pieces: Sequence[Piece]) -> bool:
    """Whether a call has pieces with several ids of which one repeats.

    Such ids do not change with every piece, so it is two calls.
    """
    joined = {identity for call in calls if len(call.ids) > 1 for identity in call.ids}
    if not joined:
        return False
    counts = Counter(piece.id for piece in pieces)
    return any(counts[identity] > 1 for identity in joined)


def _are_piece_labels_unique(pieces: Sequence[Piece]) -> bool:
    """Whether no id occurs twice, and no index except one that is equal for all."""
    indexes = [piece.index for piece in pieces if piece.index is not None]
    ids = [piece.id for piece in pieces if piece.id]
    return len(set(ids)) == len(ids) and len(set(indexes)) in (len(indexes), 1)


def _are_piece_labels_clean(calls: list[CallPieces], pieces: Sequence[Piece]) -> bool:
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
        and not _are_piece_labels_unique(pieces)
    )


def _are_call_pieces_orderly(calls: list[CallPieces]) -> bool:
    """Whether each call ended before the next began; the last one may be cut."""
    return (
        all(call.name and not call.restarts for call in calls)
        and all(call.text.is_whole for call in calls[:-1])
        and not (len(calls) > 1 and any(call.is_patched for call in calls))
    )


# Results


def _join_call_pieces(calls: list[CallPieces]) -> list[ReadCall]:
    return [
        ReadCall(call.name, EMPTY if call.text.is_empty else call.arguments, call.extra)
        for call in calls
    ]


def _call_of_mixed_pieces(pieces: Sequence[Piece]) -> ReadCall:
    """Return one call in place of all, which is refused when it is run."""
    name = next((piece.name for piece in pieces if piece.name), "")
    return ReadCall(name, json.dumps({MIXED_UP: "".join(_call_piece_texts(pieces))[:MAX_SHOWN]}))


def _call_piece_texts(pieces: Sequence[Piece]) -> Iterator[str]:
    for piece in pieces:
        yield f"{piece.name} {piece.arguments}" if piece.name else piece.arguments

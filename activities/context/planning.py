"""What to clear and when to summarise: pure decisions over the sizes of messages.

From the safest to the most lossy, each rung only when the one before is not enough: results older
than the last few are cleared, then the older exchanges are folded into a summary. What the model
has not seen yet, the results of its newest reply, goes only where all of it would not fit. A call
and its results are never separated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

KEPT_RESULTS = 5
SUMMARY_TOKENS = 2000
ENOUGH = 0.75
"""Share of the limit below which clearing alone is enough: there must be room to work in, or the
next turn compacts again and spoils the provider's prompt cache once more."""
ROOM = 0.5
"""Share of the limit that is aimed at when exchanges are folded."""


class Piece(NamedTuple):
    """A message as far as planning cares."""

    role: str
    tokens: int
    cleared: int
    """Its tokens once it is cleared; the same when nothing is gained."""


@dataclass(frozen=True)
class Plan:
    """Message numbers: results below `cleared` are placeholders, all below `folded` summarised."""

    cleared: int
    folded: int
    unseen: int = 0
    """The reply some of whose results were cleared before the model saw them; 0 for none."""


def plan(
    pieces: Sequence[Piece], opening: int, present: Plan, fixed: int, limit: int, *, hard: bool
) -> Plan:
    """What is to be shown from now on.

    Args:
        pieces: Every message of the phase, oldest first.
        opening: How many of them open the phase and always stay.
        present: What is shown now; nothing that was taken away comes back.
        fixed: Tokens of everything that is not conversation (tools, todo list).
        limit: Tokens that a request may have.
        hard: The endpoint said the request was too long: fold even when clearing seems enough,
            and the last exchange too if it must be.
    """
    start = max(present.folded, opening)
    base = fixed + sum(piece.tokens for piece in pieces[:opening])
    beginnings = [n for n in range(start, len(pieces)) if pieces[n].role == "assistant"]
    newest = beginnings[-1] if beginnings else len(pieces)
    places = [n for n in beginnings if n > start]

    def size(cleared: int, folded: int) -> int:
        summary = SUMMARY_TOKENS if folded > opening else 0
        shown = enumerate(pieces[folded:], folded)
        return base + summary + sum(p.cleared if n < cleared else p.tokens for n, p in shown)

    def made(clear: int) -> Plan:
        cleared = max(clear, present.cleared, start)
        if not hard and size(cleared, start) <= ENOUGH * limit:
            return replace(present, cleared=cleared)
        last = len(pieces) if hard else newest
        folded = next((n for n in places if size(cleared, n) <= ROOM * limit), last)
        if folded <= start:
            return replace(present, cleared=cleared)
        return replace(present, cleared=max(cleared, folded), folded=folded)

    def fits(found: Plan) -> bool:
        shown = size(found.cleared, max(found.folded, start))
        return found.folded <= newest and shown <= limit

    few = _clear_before(pieces)
    found = made(min(few, newest))
    # Of the newest reply's results at most the last few then, and at least the last.
    for clear in range(max(few, newest + 2), len(pieces)):
        if fits(found):
            break
        found = replace(made(clear), unseen=newest)
    return found


def _clear_before(pieces: Sequence[Piece]) -> int:
    """Number of the oldest result that stays."""
    results = [number for number, piece in enumerate(pieces) if piece.role == "tool"]
    return results[-KEPT_RESULTS] if len(results) > KEPT_RESULTS else 0

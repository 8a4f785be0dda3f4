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
"""Long results that stay, the newest; short ones are neither counted nor cleared."""
SUMMARY_TOKENS = 2000
ENOUGH = 0.75
"""Share of the limit that clearing aims at: there must be room to work in, or the next turn
compacts again and spoils the provider's prompt cache once more."""
ROOM = 0.5
"""Share of the limit that is aimed at when exchanges are folded."""


class Piece(NamedTuple):
    """A message as far as planning cares."""

    role: str
    tokens: int
    cleared: int
    """Its tokens once it is cleared; the same when nothing is gained."""
    needed: bool = False
    """Whether an open todo names the file that it shows."""


@dataclass(frozen=True)
class Plan:
    """Message numbers: results below `cleared` are placeholders, all below `folded` summarised."""

    cleared: int
    folded: int
    unseen: int = 0
    """The reply some of whose results were cleared before the model saw them; 0 for none."""
    spared: tuple[int, ...] = ()
    """Results below `cleared` that are shown all the same."""


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

    def size(made: Plan, folded: int) -> int:
        summary = SUMMARY_TOKENS if folded > opening else 0
        shown = enumerate(pieces[folded:], folded)
        brief = (n < made.cleared and n not in made.spared for n in range(folded, len(pieces)))
        return (
            base
            + summary
            + sum(
                p.cleared if short else p.tokens for (_, p), short in zip(shown, brief, strict=True)
            )
        )

    def clearing(until: int) -> Plan:
        """As few results cleared as are enough, the oldest first, those a todo needs last."""
        cleared = max(present.cleared, start)
        spared = tuple(n for n in present.spared if n >= start)
        made = replace(present, cleared=cleared, spared=spared)
        if hard:
            return replace(made, cleared=max(until, cleared), spared=())
        ahead = [n for n in range(cleared, until) if pieces[n].cleared < pieces[n].tokens]
        for number in [n for n in ahead if not pieces[n].needed]:
            if size(made, start) <= ENOUGH * limit:
                return made
            passed = (n for n in ahead if n < number and pieces[n].needed)
            made = replace(made, cleared=number + 1, spared=tuple({*spared, *passed}))
        if size(made, start) > ENOUGH * limit:
            made = replace(made, cleared=max(until, cleared), spared=())
        return replace(made, spared=tuple(sorted(made.spared)))

    def folding(made: Plan) -> Plan:
        if not hard and size(made, start) <= ENOUGH * limit:
            return made
        last = len(pieces) if hard else newest
        folded = next((n for n in places if size(made, n) <= ROOM * limit), last)
        if folded <= start:
            return made
        spared = tuple(n for n in made.spared if n >= folded)
        return replace(made, cleared=max(made.cleared, folded), folded=folded, spared=spared)

    def fits(made: Plan) -> bool:
        return made.folded <= newest and size(made, max(made.folded, start)) <= limit

    few = _clear_before(pieces)
    found = folding(clearing(min(few, newest)))
    # Of the newest reply's results at most the last few then, and at least the last.
    for clear in range(max(few, newest + 2), len(pieces)):
        if fits(found):
            break
        found = replace(folding(clearing(clear)), unseen=newest)
    return found


def _clear_before(pieces: Sequence[Piece]) -> int:
    """Number of the oldest result that stays."""
    results = [n for n, piece in enumerate(pieces) if piece.cleared < piece.tokens]
    return results[-KEPT_RESULTS] if len(results) > KEPT_RESULTS else 0

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


class MessageSize(NamedTuple):
    """A message as far as planning cares."""

    role: str
    tokens: int
    cleared: int
    """Its tokens once it is cleared; the same when nothing is gained."""
    needed: bool = False
    """Whether an open todo names the file that it shows."""


@dataclass(frozen=True)
class CompactionPlan:
    """Message numbers: results below `cleared` are placeholders, all below `folded` summarised."""

    cleared: int
    folded: int
    unseen: int = 0
    """The reply some of whose results were cleared before the model saw them; 0 for none."""
    spared: tuple[int, ...] = ()
    """Results below `cleared` that are shown all the same."""


def plan_compaction(
    pieces: Sequence[MessageSize],
    opening: int,
    present: CompactionPlan,
    fixed: int,
    limit: int,
    *,
    hard: bool,
) -> CompactionPlan:
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
    planner = _Planner(pieces, opening, present, fixed, limit, hard)
    newest = planner.newest
    few = _clear_before(pieces)
    planned = planner.fold(planner.clear(min(few, newest)))
    # Of the newest reply's results at most the last few then, and at least the last.
    for clear in range(max(few, newest + 2), len(pieces)):
        if planner.fits(planned):
            break
        planned = replace(planner.fold(planner.clear(clear)), unseen=newest)
    return planned


class _Planner:
    """The sizes that a plan is chosen by; arguments as those of `plan`."""

    def __init__(
        self,
        pieces: Sequence[MessageSize],
        opening: int,
        present: CompactionPlan,
        fixed: int,
        limit: int,
        hard: bool,
    ) -> None:
        self.pieces, self.opening, self.present = pieces, opening, present
        self.limit, self.hard = limit, hard
        self.start = max(present.folded, opening)
        self.base = fixed + sum(piece.tokens for piece in pieces[:opening])
        replies = [n for n in range(self.start, len(pieces)) if pieces[n].role == "assistant"]
        self.newest = replies[-1] if replies else len(pieces)
        """Where the newest reply stands."""
        self._places = [n for n in replies if n > self.start]
        """Where the summarised part may end."""

    def size(self, plan: CompactionPlan, folded: int) -> int:
        """Tokens of the request when the messages before `folded` are summarised."""
        summary = SUMMARY_TOKENS if folded > self.opening else 0
        tokens = 0
        for number, piece in enumerate(self.pieces[folded:], folded):
            is_cleared = number < plan.cleared and number not in plan.spared
            tokens += piece.cleared if is_cleared else piece.tokens
        return self.base + summary + tokens

    def clear(self, until: int) -> CompactionPlan:
        """As few results cleared as are enough, the oldest first, those a todo needs last."""
        cleared = max(self.present.cleared, self.start)
        spared = tuple(n for n in self.present.spared if n >= self.start)
        plan = replace(self.present, cleared=cleared, spared=spared)
        if self.hard:
            return replace(plan, cleared=max(until, cleared), spared=())
        pieces, enough = self.pieces, ENOUGH * self.limit
        ahead = [n for n in range(cleared, until) if pieces[n].cleared < pieces[n].tokens]
        for number in [n for n in ahead if not pieces[n].needed]:
            if self.size(plan, self.start) <= enough:
                return plan
            passed = (n for n in ahead if n < number and pieces[n].needed)
            plan = replace(plan, cleared=number + 1, spared=tuple({*spared, *passed}))
        if self.size(plan, self.start) > enough:
            plan = replace(plan, cleared=max(until, cleared), spared=())
        return replace(plan, spared=tuple(sorted(plan.spared)))

    def fold(self, plan: CompactionPlan) -> CompactionPlan:
        """The plan with as much summarised as leaves room, where clearing is not enough."""
        if not self.hard and self.size(plan, self.start) <= ENOUGH * self.limit:
            return plan
        last = len(self.pieces) if self.hard else self.newest
        room = ROOM * self.limit
        folded = next((n for n in self._places if self.size(plan, n) <= room), last)
        if folded <= self.start:
            return plan
        spared = tuple(n for n in plan.spared if n >= folded)
        return replace(plan, cleared=max(plan.cleared, folded), folded=folded, spared=spared)

    def fits(self, plan: CompactionPlan) -> bool:
        """Whether the request is within the limit, with the newest reply as it is."""
        size = self.size(plan, max(plan.folded, self.start))
        return plan.folded <= self.newest and size <= self.limit


def _clear_before(pieces: Sequence[MessageSize]) -> int:
    """Number of the oldest result that stays."""
    results = [n for n, piece in enumerate(pieces) if piece.cleared < piece.tokens]
    return results[-KEPT_RESULTS] if len(results) > KEPT_RESULTS else 0

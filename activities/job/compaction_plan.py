"""Decide what to clear and what to summarise; pure functions of message sizes.

The steps go from safe to lossy, and each is taken only if the one before is not enough: results
older than the last few are cleared, and texts written into files before them; then all texts
written before the newest reply; then older exchanges are folded into a summary. Results of the
newest reply, which the model has not seen, are cleared only if they do not fit all together. A call
and its result are never separated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

KEPT_RESULTS = 5
"""Number of newest long results that stay; short ones are neither counted nor cleared."""
SUMMARY_TOKENS = 2000
ENOUGH = 0.75
"""Share of the limit that clearing aims at. Without room to work, the next turn would compact again
and invalidate the provider's prompt cache once more.
"""
ROOM = 0.5
"""Share of the limit that folding aims at."""


class MessageSize(NamedTuple):
    """A message's sizes, as planning needs them."""

    role: str
    tokens: int
    cleared: int
    """Its tokens once cleared; unchanged if clearing gains nothing."""
    needed: bool = False
    """Whether an open todo names the file that it shows."""


@dataclass(frozen=True)
class CompactionPlan:
    cleared: int
    folded: int
    unseen: int = 0
    """Number of the reply some of whose results were cleared unseen; 0 for none."""
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
    planner = _CompactionPlanner(pieces, opening, present, fixed, limit, hard)
    newest = planner.newest
    few = _oldest_uncompacted_result(pieces)
    planned = planner.fold(planner.clear_written_texts(planner.clear(min(few, newest))))
    # Of the newest reply's results, keep at most the last few and at least the last.
    for clear in range(max(few, newest + 2), len(pieces)):
        if planner.fits(planned):
            break
        planned = replace(planner.fold(planner.clear(clear)), unseen=newest)
    return planned


class _CompactionPlanner:
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
        """Index of the newest reply."""
        self._places = [n for n in replies if n > self.start]
        """Indexes where the summarised part may end."""

    def size(self, plan: CompactionPlan, folded: int) -> int:
        summary = SUMMARY_TOKENS if folded > self.opening else 0
        tokens = 0
        for number, piece in enumerate(self.pieces[folded:], folded):
            is_cleared = number < plan.cleared and number not in plan.spared
            tokens += piece.cleared if is_cleared else piece.tokens
        return self.base + summary + tokens

    def clear(self, until: int) -> CompactionPlan:
        """Clear as few results as necessary: oldest first, those that a todo needs last."""
        cleared = max(self.present.cleared, self.start)
        spared = tuple(n for n in self.present.spared if n >= self.start)
        plan = replace(self.present, cleared=cleared, spared=spared)
        if self.hard:
            return replace(plan, cleared=max(until, cleared), spared=())
        pieces, enough = self.pieces, ENOUGH * self.limit
        ahead = [n for n in range(cleared, until) if self._is_long(n)]
        for number in [n for n in ahead if not pieces[n].needed]:
            if self.size(plan, self.start) <= enough:
                return plan
            passed = (n for n in ahead if n < number and pieces[n].needed)
            plan = replace(plan, cleared=number + 1, spared=tuple({*spared, *passed}))
        if self.size(plan, self.start) > enough:
            recent = tuple(n for n in spared if n >= until)
            plan = replace(plan, cleared=max(until, cleared), spared=recent)
        return replace(plan, spared=tuple(sorted(plan.spared)))

    def clear_written_texts(self, plan: CompactionPlan) -> CompactionPlan:
        if self.newest <= plan.cleared or self.size(plan, self.start) <= ENOUGH * self.limit:
            return plan
        results = (n for n in range(plan.cleared, self.newest) if self.pieces[n].role == "tool")
        spared = (*plan.spared, *(n for n in results if self._is_long(n)))
        return replace(plan, cleared=self.newest, spared=spared)

    def _is_long(self, number: int) -> bool:
        return self.pieces[number].cleared < self.pieces[number].tokens

    def fold(self, plan: CompactionPlan) -> CompactionPlan:
        """Return the plan that folds just enough, if clearing is not enough."""
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
        size = self.size(plan, max(plan.folded, self.start))
        return plan.folded <= self.newest and size <= self.limit


def _oldest_uncompacted_result(pieces: Sequence[MessageSize]) -> int:
    """Return the number of the oldest result that stays."""
    results = [
        n for n, piece in enumerate(pieces) if piece.role == "tool" and piece.cleared < piece.tokens
    ]
    return results[-KEPT_RESULTS] if len(results) > KEPT_RESULTS else 0

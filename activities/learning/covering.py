"""Whether one guard refuses all that another one refuses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from config.guard_schema import Guard, Match

PATTERNS = ("tool", "path", "agent")
"""Shell patterns of which one has to fit; none given fits everything."""


def covers(wide: Guard, narrow: Guard) -> bool:
    """Whether the wide one, which denies, is about everything that the narrow one is about.

    Told from the files alone: False where that would take knowing what a pattern can match.
    """
    if wide.decision != "deny" or wide.point != narrow.point:
        return False
    ours, theirs = wide.match, narrow.match
    if not all(_widens(getattr(ours, name), getattr(theirs, name)) for name in PATTERNS):
        return False
    if not (
        _at_most(ours.reads_lines, theirs.reads_lines) and _at_most(ours.longer, theirs.longer)
    ):
        return False
    open_match = Match()
    rest = set(Match.model_fields) - {*PATTERNS, "reads_lines", "longer"}
    return all(
        getattr(ours, name) in (getattr(open_match, name), getattr(theirs, name)) for name in rest
    )


def _widens(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    if not wide:
        return True
    return bool(narrow) and all(any(_fits(one, given) for one in wide) for given in narrow)


def _fits(wide: str, narrow: str) -> bool:
    """Whether all that the narrow pattern fits, the wide one does."""
    # A star of the narrow one is taken as a letter, which only a star of the wide one may take.
    return wide == narrow or (not set("?[") & set(wide + narrow) and fnmatchcase(narrow, wide))


def _at_most(wide: int | None, narrow: int | None) -> bool:
    return wide is None or (narrow is not None and wide <= narrow)

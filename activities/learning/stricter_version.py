"""Make an existing guard strict enough to refuse what it let pass. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from activities.guards.matching import (
    GuardSituation,
    count_lines_for_matching,
    guard_matched_length,
    would_match_guard,
)
from activities.learning.call_moments import CallMoment
from config.schema.guards import Guard


def stricter_version(guard: Guard, moments: Sequence[CallMoment]) -> Guard | None:
    """Return a guard that refuses all these calls by one changed limit or decision.

    It denies instead of remarking or asking, or its limit is as low as the smallest call requires.

    Returns:
        None for a guard on something else, or one that refuses them already.
    """
    situations = [moment.situation for moment in moments]
    if not situations or is_guard_strict_enough(guard, situations):
        return None
    for version in _stricter_versions(guard, situations):
        if is_guard_strict_enough(version, situations):
            return version
    return None


def is_guard_strict_enough(guard: Guard, situations: Sequence[GuardSituation]) -> bool:
    """Whether the guard denies all these calls."""
    return guard.decision == "deny" and all(would_match_guard(guard, now) for now in situations)


def _stricter_versions(guard: Guard, situations: Sequence[GuardSituation]) -> list[Guard]:
    """Yield versions that are stricter in one way."""
    match, versions = guard.match, []
    if guard.decision == "ask":
        versions.append(guard.model_copy(update={"decision": "deny"}))
    if guard.decision == "feedback" and not match.content and match.longer is None:
        versions.append(guard.model_copy(update={"decision": "deny", "point": "before_tool"}))
    if guard.decision != "deny":
        return versions
    if match.reads_lines is not None:
        read = min(count_lines_for_matching(now) or 0 for now in situations)
        if 1 < read <= match.reads_lines:
            versions.append(_with_stricter_limit(guard, "reads_lines", _round_limit_down(read)))
    if match.longer is not None:
        written = min(guard_matched_length(match, now) for now in situations)
        if 1 < written <= match.longer:
            versions.append(_with_stricter_limit(guard, "longer", _round_limit_down(written)))
    return versions


def _with_stricter_limit(guard: Guard, name: str, limit: int) -> Guard:
    return guard.model_copy(update={"match": guard.match.model_copy(update={name: limit})})


def _round_limit_down(value: int) -> int:
    """Return the greatest number of one digit and zeros that is smaller: 599 and 501 give 500."""
    power: int = 10 ** (len(str(value - 1)) - 1)
    return (value - 1) // power * power

"""A guard that is there, made so strict that it refuses what it has let pass. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from activities.guards.matching import Situation, characters, lines_read, would_concern
from activities.learning.situations import Moment
from config.schema.guards import Guard


def stricter(guard: Guard, moments: Sequence[Moment]) -> Guard | None:
    """The guard as it would have refused all these calls, where one limit or decision keeps it.

    It says so instead of remarking on the result or asking a person, or its limit is as low as
    the smallest of the calls takes.

    Returns:
        None for a guard that is about something else, or refuses them already.
    """
    seen = [moment.now for moment in moments]
    if not seen or refuses(guard, seen):
        return None
    for made in _made(guard, seen):
        if refuses(made, seen):
            return made
    return None


def refuses(guard: Guard, seen: Sequence[Situation]) -> bool:
    """Whether the guard denies all these calls."""
    return guard.decision == "deny" and all(would_concern(guard, now) for now in seen)


def _made(guard: Guard, seen: Sequence[Situation]) -> list[Guard]:
    """Versions that are stricter in one way."""
    match, found = guard.match, []
    if guard.decision == "ask":
        found.append(guard.model_copy(update={"decision": "deny"}))
    if guard.decision == "feedback" and not match.content and match.longer is None:
        found.append(guard.model_copy(update={"decision": "deny", "point": "before_tool"}))
    if guard.decision != "deny":
        return found
    if match.reads_lines is not None:
        read = min(lines_read(now) or 0 for now in seen)
        if 1 < read <= match.reads_lines:
            found.append(_limited(guard, "reads_lines", _below(read)))
    if match.longer is not None:
        written = min(characters(match, now) for now in seen)
        if 1 < written <= match.longer:
            found.append(_limited(guard, "longer", _below(written)))
    return found


def _limited(guard: Guard, name: str, limit: int) -> Guard:
    return guard.model_copy(update={"match": guard.match.model_copy(update={name: limit})})


def _below(value: int) -> int:
    """The greatest number of one digit and noughts that is smaller: 599 and 501 give 500."""
    power: int = 10 ** (len(str(value - 1)) - 1)
    return (value - 1) // power * power

"""A proposal for a pattern: a guard by a template, a stricter one, or words for a prompt. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from activities.learning.patterns import Pattern, reason_of
from activities.learning.situations import Moment
from activities.learning.stricter import stricter
from activities.learning.templates import guard_for, slug
from config.learned_guards import Learned
from config.schema.guards import Guard
from protocol.text import first_few

OF_PEOPLE = ("person", "hook")
"""Who refuses from outside: what they say can become a guard. What a guard or gate refuses is
refused already, and only a prompt keeps the agent from trying."""
SHOWN = 10


def propose(pattern: Pattern, at: int, moments: Sequence[Moment] = ()) -> Learned:
    """One proposal for a pattern, with its evidence.

    Args:
        pattern: Past its threshold.
        at: Now, epoch seconds.
        moments: Of the pattern's traces, those that are still known.
    """
    guard = guard_for(pattern, moments) if pattern.source in OF_PEOPLE else None
    by = guard.name if guard else _prompt_name(pattern)
    name = name_for(pattern.agent, pattern.project, by)
    return Learned(
        name=name,
        stage="experiment" if guard else "draft",
        at=at,
        since=at,
        why="proposed from a pattern",
        agent=pattern.agent,
        project=pattern.project,
        evidence=_evidence(pattern),
        guard=guard.model_copy(update={"name": name}) if guard else None,
        prompt="" if guard else _prompt(pattern),
    )


def propose_stricter(
    pattern: Pattern,
    at: int,
    moments: Sequence[Moment],
    learned: Sequence[Learned],
    own: Sequence[Guard],
) -> Learned | None:
    """A stricter version of a guard that knows such calls and lets them pass.

    Args:
        learned: The newest revisions of the guards of the same agent and project.
        own: The agent's own guards.

    Returns:
        A further revision of the learned guard, or the first of one that takes the place of the
        agent's own; None: no guard is like that.
    """  # fmt: skip
    if pattern.source not in OF_PEOPLE:
        return None
    given = {"stage": "experiment", "at": at, "since": at, "evidence": _evidence(pattern)}
    for one in learned:
        if one.guard and (made := _worded(stricter(one.guard, moments), pattern)):
            why = f"stricter than before, {_change(one.guard, made)}"
            return one.model_copy(update={**given, "guard": made, "why": why})
    for guard in own:
        if guard.stage == "active" and (made := _worded(stricter(guard, moments), pattern)):
            name = name_for(pattern.agent, pattern.project, guard.name)
            return Learned.model_validate(
                {
                    **given,
                    "name": name,
                    "why": f"stricter than the agent's own {guard.name}, {_change(guard, made)}",
                    "agent": pattern.agent,
                    "project": pattern.project,
                    "guard": made.model_copy(update={"name": name}),
                    "replaces": guard.name,
                }
            )
    return None


def name_for(agent: str, project: str, by: str) -> str:
    """The name of a guard that jobs of an agent, or of a project's agent, led to."""
    return slug(f"{project}.{agent}.{by}".strip("."))


def _worded(guard: Guard | None, pattern: Pattern) -> Guard | None:
    """With what was said of these calls: the message may name the old limit."""
    if guard is None or not pattern.lesson:
        return guard
    return guard.model_copy(update={"message": pattern.lesson})


def _change(before: Guard, after: Guard) -> str:
    """`reads_lines 1000 -> 500`, `decision ask -> deny`."""
    pairs = [("decision", before.decision, after.decision)]
    pairs += [
        (name, getattr(before.match, name), getattr(after.match, name))
        for name in ("reads_lines", "longer")
    ]
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in pairs if old != new)


def _evidence(pattern: Pattern) -> list[str]:
    numbers = [f"T{row.id}" for row in pattern.traces]
    return [pattern.line, f"traces {first_few(numbers, SHOWN)}"]


def _prompt_name(pattern: Pattern) -> str:
    """What a guard says of one tool and what it says of another are two patterns, as are two of its
    reasons: the oldest trace tells these apart, which stays the oldest."""
    reason = hashlib.sha256(reason_of(pattern.traces[0]).encode("utf-8", "replace")).hexdigest()
    about = ".".join(filter(None, (pattern.guard or pattern.source, pattern.tool)))
    return f"{slug(about)}.prompt-{reason[:6]}"


def _prompt(pattern: Pattern) -> str:
    said = f"It is answered: {pattern.lesson}" if pattern.lesson else "See the traces."
    return (
        f"Agent {pattern.agent} keeps running into {pattern.source} {pattern.guard}"
        f"{f' with {pattern.tool}' if pattern.tool else ''}. No guard helps, since it is refused "
        f"already or fits no template: say in the agent's prompt or todos what to do. {said}"
    )

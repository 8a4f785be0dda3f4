"""A proposal for a pattern: a guard by a template, a stricter one, or words for a prompt. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from activities.learning.guard_templates import guard_for, guard_slug
from activities.learning.patterns import Pattern, reason_of
from activities.learning.situations import CallMoment
from activities.learning.stricter_version import stricter_version
from config.learned_guards import LearnedRevision
from config.schema.guards import Guard
from protocol.text import first_few

OF_PEOPLE = ("person", "hook")
"""Who refuses from outside: what they say can become a guard. What a guard or gate refuses is
refused already, and only a prompt keeps the agent from trying."""
SHOWN = 10


def propose_guard(
    pattern: Pattern, timestamp: int, moments: Sequence[CallMoment] = ()
) -> LearnedRevision:
    """One proposal for a pattern, with its evidence.

    Args:
        pattern: Past its threshold.
        timestamp: Now, epoch seconds.
        moments: Of the pattern's traces, those that are still known.
    """
    guard = guard_for(pattern, moments) if pattern.source in OF_PEOPLE else None
    by = guard.name if guard else _prompt_name(pattern)
    name = name_for(pattern.agent, pattern.project, by)
    return LearnedRevision(
        name=name,
        stage="experiment" if guard else "draft",
        at=timestamp,
        since=timestamp,
        why="proposed from a pattern",
        agent=pattern.agent,
        project=pattern.project,
        evidence=_list_evidence(pattern),
        guard=guard.model_copy(update={"name": name}) if guard else None,
        prompt="" if guard else _prompt_proposal(pattern),
    )


def propose_stricter(
    pattern: Pattern,
    timestamp: int,
    moments: Sequence[CallMoment],
    learned: Sequence[LearnedRevision],
    agent_guards: Sequence[Guard],
) -> LearnedRevision | None:
    """A stricter version of a guard that knows such calls and lets them pass.

    Args:
        learned: The newest revisions of the guards of the same agent and project.
        agent_guards: Those of the agent's files.

    Returns:
        A further revision of the learned guard, or the first of one that takes the place of the
        agent's own; None: no guard is like that.
    """  # fmt: skip
    if pattern.source not in OF_PEOPLE:
        return None
    common = {
        "stage": "experiment",
        "at": timestamp,
        "since": timestamp,
        "evidence": _list_evidence(pattern),
    }
    for revision in learned:
        if revision.guard and (
            version := _with_lesson(stricter_version(revision.guard, moments), pattern)
        ):
            why = f"stricter than before, {_describe_change(revision.guard, version)}"
            return revision.model_copy(update={**common, "guard": version, "why": why})
    for guard in agent_guards:
        if guard.stage == "active" and (
            version := _with_lesson(stricter_version(guard, moments), pattern)
        ):
            name = name_for(pattern.agent, pattern.project, guard.name)
            return LearnedRevision.model_validate(
                {
                    **common,
                    "name": name,
                    "why": f"stricter than the agent's own {guard.name}, "
                    f"{_describe_change(guard, version)}",
                    "agent": pattern.agent,
                    "project": pattern.project,
                    "guard": version.model_copy(update={"name": name}),
                    "replaces": guard.name,
                }
            )
    return None


def name_for(agent: str, project: str, by: str) -> str:
    """The name of a guard that jobs of an agent, or of a project's agent, led to."""
    return guard_slug(f"{project}.{agent}.{by}".strip("."))


def _with_lesson(guard: Guard | None, pattern: Pattern) -> Guard | None:
    """With what was said of these calls: the message may name the old limit."""
    if guard is None or not pattern.lesson:
        return guard
    return guard.model_copy(update={"message": pattern.lesson})


def _describe_change(before: Guard, after: Guard) -> str:
    """`reads_lines 1000 -> 500`, `decision ask -> deny`."""
    pairs = [("decision", before.decision, after.decision)]
    pairs += [
        (name, getattr(before.match, name), getattr(after.match, name))
        for name in ("reads_lines", "longer")
    ]
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in pairs if old != new)


def _list_evidence(pattern: Pattern) -> list[str]:
    numbers = [f"T{row.id}" for row in pattern.traces]
    return [pattern.line, f"traces {first_few(numbers, SHOWN)}"]


def _prompt_name(pattern: Pattern) -> str:
    """What a guard says of one tool and what it says of another are two patterns, as are two of its
    reasons: the oldest trace distinguishes these, since it stays the oldest."""
    reason = hashlib.sha256(reason_of(pattern.traces[0]).encode("utf-8", "replace")).hexdigest()
    about = ".".join(filter(None, (pattern.guard or pattern.source, pattern.tool)))
    return f"{guard_slug(about)}.prompt-{reason[:6]}"


def _prompt_proposal(pattern: Pattern) -> str:
    said = f"It is answered: {pattern.lesson}" if pattern.lesson else "See the traces."
    return (
        f"Agent {pattern.agent} keeps running into {pattern.source} {pattern.guard}"
        f"{f' with {pattern.tool}' if pattern.tool else ''}. No guard helps, since it is refused "
        f"already or fits no template: say in the agent's prompt or todos what to do. {said}"
    )

"""Propose an answer to a pattern: a guard by template, a stricter guard, or a prompt. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from activities.learning.call_moments import CallMoment
from activities.learning.guard_templates import guard_from_template, template_guard_name
from activities.learning.stricter_version import stricter_version
from activities.learning.trace_patterns import Pattern, pattern_reason
from config.learned_guards import LearnedRevision
from config.schema.guards import Guard
from protocol.short_text import first_few

OF_PEOPLE = ("person", "hook")
"""Types of traces by people, which can become guards. What guards or gates refuse is refused
already, and only a prompt keeps the agent from trying.
"""
SHOWN = 10


def propose_guard(
    pattern: Pattern, timestamp: int, moments: Sequence[CallMoment] = ()
) -> LearnedRevision:
    """Return one proposal for a pattern, with its evidence.

    Args:
        pattern: A pattern above its threshold.
        timestamp: Now, epoch seconds.
        moments: The known calls of the pattern's traces.
    """
    guard = guard_from_template(pattern, moments) if pattern.source in OF_PEOPLE else None
    by = guard.name if guard else _name_prompt_proposal(pattern)
    name = name_guard_proposal(pattern.agent, pattern.project, by)
    return LearnedRevision(
        name=name,
        stage="experiment" if guard else "draft",
        at=timestamp,
        since=timestamp,
        why="proposed from a pattern",
        agent=pattern.agent,
        project=pattern.project,
        **_proposal_evidence(pattern),
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
    """Return a stricter version of a guard that covers such calls but lets them pass.

    Args:
        learned: Newest revisions of the guards of the same agent and project.
        agent_guards: Guards in the agent's files.

    Returns:
        A further revision of a learned guard, or the first one that replaces the agent's own guard;
        None if there is no such guard.
    """
    if pattern.source not in OF_PEOPLE:
        return None
    common = {
        "stage": "experiment",
        "at": timestamp,
        "since": timestamp,
        **_proposal_evidence(pattern),
    }
    for revision in learned:
        if revision.guard and (
            version := _guard_with_lesson(stricter_version(revision.guard, moments), pattern)
        ):
            why = f"stricter than before, {_describe_stricter_proposal(revision.guard, version)}"
            return revision.model_copy(update={**common, "guard": version, "why": why})
    for guard in agent_guards:
        if guard.stage == "active" and (
            version := _guard_with_lesson(stricter_version(guard, moments), pattern)
        ):
            name = name_guard_proposal(pattern.agent, pattern.project, guard.name)
            return LearnedRevision.model_validate(
                {
                    **common,
                    "name": name,
                    "why": f"stricter than the agent's own {guard.name}, "
                    f"{_describe_stricter_proposal(guard, version)}",
                    "agent": pattern.agent,
                    "project": pattern.project,
                    "guard": version.model_copy(update={"name": name}),
                    "replaces": guard.name,
                }
            )
    return None


def name_guard_proposal(agent: str, project: str, by: str) -> str:
    """Return the name of a guard learned from jobs of an agent, or of a project's agent."""
    return template_guard_name(f"{project}.{agent}.{by}".strip("."))


def _guard_with_lesson(guard: Guard | None, pattern: Pattern) -> Guard | None:
    """Add the correction for these calls: the guard's own message may name the old limit."""
    if guard is None or not pattern.lesson:
        return guard
    return guard.model_copy(update={"message": pattern.lesson})


def _describe_stricter_proposal(before: Guard, after: Guard) -> str:
    """Return the change as `reads_lines 1000 -> 500` or `decision ask -> deny`."""
    pairs = [("decision", before.decision, after.decision)]
    pairs += [
        (name, getattr(before.match, name), getattr(after.match, name))
        for name in ("reads_lines", "longer")
    ]
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in pairs if old != new)


def _proposal_evidence(pattern: Pattern) -> dict[str, Any]:
    numbers = [row.id for row in pattern.traces]
    named = first_few([f"T{number}" for number in numbers], SHOWN)
    return {"evidence": [pattern.line, f"traces {named}"], "traces": numbers[:SHOWN]}


def _name_prompt_proposal(pattern: Pattern) -> str:
    """Return a prompt's name. Refusals of two tools, or for two reasons, are two patterns; the
    oldest trace distinguishes them, since it stays the oldest.
    """
    reason = hashlib.sha256(
        pattern_reason(pattern.traces[0]).encode("utf-8", "replace")
    ).hexdigest()
    about = ".".join(filter(None, (pattern.guard or pattern.source, pattern.tool)))
    return f"{template_guard_name(about)}.prompt-{reason[:6]}"


def _prompt_proposal(pattern: Pattern) -> str:
    answer = f"It is answered: {pattern.lesson}" if pattern.lesson else "See the traces."
    return (
        f"Agent {pattern.agent} keeps running into {pattern.source} {pattern.guard}"
        f"{f' with {pattern.tool}' if pattern.tool else ''}. No guard helps, since it is refused "
        f"already or fits no template: say in the agent's prompt or todos what to do. {answer}"
    )

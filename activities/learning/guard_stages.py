"""Move a learned guard to another stage, by its agent's settings, as a revision of its file."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Row
from temporalio import activity

from activities.checkpoints import Root
from activities.learning.finished_jobs import read_finished_job
from activities.learning.guard_precision import GuardFigures, measure_guard_precision
from activities.runtime.activity_info import attempt_started_ms
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from config.agent_files import agent_names, load_agent
from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.agent import AgentConfig
from config.schema.agent_sections import Learning
from config.schema.guards import GuardStage


def guard_revision_time() -> int:
    """Return epoch seconds by the server's clock, as in traces; by the local clock in a command.

    Counting starts at the guard's creation. A host whose clock is a day ahead would let the guard
    act uncounted for a day.
    """
    if activity.in_activity():
        return attempt_started_ms() // 1000
    return int(time.time())


def move_guard_to_stage(
    guards: LearnedGuards,
    learned: LearnedRevision,
    stage: GuardStage,
    why: str,
    *,
    unused: bool = False,
) -> str:
    """Write the revision, return a line; a retired stricter version leaves the one before."""
    update: dict[str, Any] = {"stage": stage, "why": why, "at": guard_revision_time()}
    update["unused"] = unused
    line = f"{learned.name}: {learned.stage} -> {stage}, {why}"
    acting = guards.acting_revision(learned) if learned.stage == "experiment" else None
    if acting and stage == "retired":
        guards.put_revision(acting.model_copy(update={**update, "stage": "active"}))
        return f"{line}; it acts as it did before"
    guards.put_revision(learned.model_copy(update=update))
    return line


def demote_guard(
    guards: LearnedGuards,
    learned: LearnedRevision,
    traces: Sequence[Row[Any]],
    accepted: Mapping[str, frozenset[str]],
) -> str | None:
    acting = guards.acting_revision(learned)
    if acting is None or acting.guard is None:
        return None
    # Figures of a stricter version on trial say nothing about the acting version.
    relevant = [row for row in traces if acting is learned or not row.stage]
    figures = measure_guard_precision(acting, relevant, accepted)
    moved = next_guard_stage("active", figures, agent_or_generalist(learned.agent).learning)
    if not moved or moved[0] != "experiment":
        return None
    if acting is learned:
        return move_guard_to_stage(guards, learned, *moved)
    guards.put_revision(
        learned.model_copy(update={"stricter_than": 0, "at": guard_revision_time()})
    )
    return f"{learned.name}: the version before the one on trial {moved[1]}"


def demote_guards(root: Root, names: set[str]) -> list[str]:
    """Put guards that people just contradicted on trial if wrong too often; a line for each."""
    guards = LearnedGuards(root.path)
    notes = []
    for learned in guards.newest_revisions():
        if learned.name not in names or guards.acting_revision(learned) is None:
            continue
        own_traces = partial(rows.list_stored_traces, guard=learned.name)
        approved = partial(rows.list_stored_traces, type="approval")
        traces = {
            row.id: row
            for query in (own_traces, approved)
            for row in RelationalStore(root).read(query)
        }
        jobs = {row.job for row in traces.values() if row.guard == learned.name}
        ended = {job: read_finished_job(root.repository(job)) for job in jobs}
        accepted = {name: job.delivered for name, job in ended.items() if job}
        if line := demote_guard(guards, learned, list(traces.values()), accepted):
            notes.append(line)
    return notes


def next_guard_stage(
    stage: GuardStage, figures: GuardFigures, settings: Learning
) -> tuple[GuardStage, str] | None:
    """Return a guard's next stage and the reason; None to leave it."""
    if stage == "active" and figures.wrong_share > settings.back_share:
        return "experiment", f"went back by itself: {figures.line}"
    if stage in ("active", "experiment") and figures.silent_jobs >= settings.silent_jobs:
        return "retired", f"retired by itself: it spoke in none of {figures.silent_jobs} jobs"
    if stage == "experiment" and settings.promote and is_guard_ready(figures, settings):
        return "active", f"promoted by itself: {figures.line}"
    return None


def is_guard_ready(figures: GuardFigures, settings: Learning) -> bool:
    return (
        figures.evaluations >= settings.evaluations and figures.wrong_share <= settings.ready_share
    )


def agent_or_generalist(name: str) -> AgentConfig:
    """Return the agent; the defaults for one that no longer exists."""
    return load_agent(name if name in agent_names() else "generalist")

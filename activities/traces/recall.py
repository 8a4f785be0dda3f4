"""Recalls traces of similar situations before a phase is planned."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row
from temporalio import activity

from activities.checkpoints import Root
from activities.job.plan_and_todo_files import parse_plan
from activities.job.snapshot import Snapshot
from activities.runtime.activity_info import activity_job_id
from activities.search.hybrid_search import DEPTH
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreUnavailableError
from activities.toolkit.agent_tools import agent_has_tool
from activities.traces.trace_search import TraceSearchScope, find_traces
from activities.traces.trace_text import render_trace

MAX_RECALLED = 3
MIN_REPEATS = 2
"""How often a refusal must recur in the same words to be recalled."""
SITUATION_CHARACTERS = 2000
STORE_SECONDS = 3.0
"""Time limit per try of the store, since the phase waits for it."""


def recall_traces(root: Root, snapshot: Snapshot, issue: str = "") -> list[str]:
    """Return the best traces of other jobs, one line each; none for phases of work, except that an
    agent with the tools for traces gets them if its job begins with work.

    A job's own traces are in its archive already; leaving them out makes checkpoints depend only on
    what other jobs stored. An unavailable store delays no phase.
    """
    config, store = snapshot.config, RelationalStore(root)
    phase = snapshot.state.phase
    begins_work = phase.number == 1 and agent_has_tool(config, "query_traces")
    if not (phase.kind == "strategic" or begins_work) or not store.may_hold_data:
        return []
    reader = recall_search_scope(snapshot)
    try:
        traces = find_traces(
            root,
            reader,
            _recall_query_text(snapshot, issue),
            DEPTH,
            embeddings=config.embeddings,
            is_wanted=lambda row: row.job != reader.job and _is_lesson(row),
            seconds=STORE_SECONDS,
        )
        # Show repeated refusals once; one that occurred only once is no lesson for other jobs.
        alike = Counter(map(_trace_identity_texts, traces))
        once: dict[tuple[str, ...], Row[Any]] = {}
        for row in traces:
            if row.type != "violation" or alike[_trace_identity_texts(row)] >= MIN_REPEATS:
                once.setdefault(_trace_identity_texts(row), row)
        traces = _one_trace_per_event(once.values())[:MAX_RECALLED]
        if traces:
            store.run(lambda c: rows.increment_trace_retrievals(c, [row.id for row in traces]))
    except StoreUnavailableError as error:
        activity.logger.warning("a phase begins without traces: %s", error)
        return []
    return [render_trace(row, "summary") for row in traces]


def _is_lesson(row: Row[Any]) -> bool:
    """Return whether a trace teaches something: not so what a gate settled silently, or what became
    of a project's other work, of which the instructions of each job say what concerns it.
    """
    if row.type == "outcome" and row.guard == "handoff":
        return False
    return bool(row.type != "decision" or row.source == "agent")


def _trace_identity_texts(row: Row[Any]) -> tuple[str, ...]:
    return row.type, row.guard, row.tool, row.what_happened, row.why, row.what_was_correct


def _one_trace_per_event(traces: Iterable[Row[Any]]) -> list[Row[Any]]:
    """Return the traces without those of an event that another describes better.

    A rewind leaves several with the same reason: what a person said, that the phase was rewound,
    what was learned, that it was completed later. They would fill the few lines.
    """
    by_event: dict[tuple[str, str], Row[Any]] = {}
    for row in traces:
        event = row.job, row.why or row.what_was_correct or row.what_happened
        first = by_event.setdefault(event, row)
        if row.what_was_correct and not first.what_was_correct:
            by_event[event] = row
    return list(by_event.values())


def recall_search_scope(snapshot: Snapshot) -> TraceSearchScope:
    project = snapshot.link.id if snapshot.link else ""
    return TraceSearchScope(activity_job_id(), snapshot.config.name, project)


def _recall_query_text(snapshot: Snapshot, issue: str) -> str:
    ahead = next(
        (phase for phase in parse_plan(snapshot.read_text("plan.md")) if phase.is_open), None
    )
    parts = (issue, ahead.name if ahead else "", snapshot.read_text("instructions.md"))
    return "\n".join(filter(None, parts))[:SITUATION_CHARACTERS]

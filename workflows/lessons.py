"""What a job leaves to be learned from: its notes, and reflections on attempts that failed."""

from __future__ import annotations

from collections.abc import Callable

from protocol.record import JobRecord
from protocol.reflection import Reflected
from protocol.traces import MOST_AT_A_TIME
from workflows import budget, parking, traces
from workflows.parking import StepFailed
from workflows.steps import Steps


async def keep_traces(job: JobRecord, steps: Steps, notice: Callable[[str], None]) -> bool:
    """Hand over what was noted; whether the store took it.

    What it does not take stays in the record and goes again with the next.
    """
    while handed := job.traces[:MOST_AT_A_TIME]:
        try:
            await steps.store_traces(job, handed)
        except StepFailed as failed:
            if not job.deferred_traces:
                notice(f"traces are kept for later: {failed.message}")
            job.deferred_traces = len(job.traces)
            if traces.is_full(job) and job.waiting is None:
                job.waiting = parking.STORE
            return False
        job.traces = job.traces[len(handed) :]
        job.deferred_traces = max(0, job.deferred_traces - len(handed))
    return True


async def reflect(
    job: JobRecord,
    steps: Steps,
    notice: Callable[[str], None],
    issue: str,
    call: int | None = None,
) -> None:
    """Learn from an attempt that failed; one that cannot be reflected on goes by without."""
    again = job.reflected == job.step + 1
    if again or not job.limits.reflection or budget.over(job, budget.reflection(job)):
        return
    try:
        made = await steps.reflect(job, issue, call)
    except StepFailed as failed:
        made = Reflected(commit=job.commit, at=job.at, failed=failed.message)
    job.spend(made.usage)
    if made.failed:
        notice(f"step {job.step}: no reflection. {made.failed}")
        return
    job.move_to(made.commit, made.at)
    job.context = made.context
    job.reflected = job.step + 1
    by = "generic reflection" if made.generic else "reflection"
    traces.note(
        job,
        "outcome",
        "agent",
        by,
        made.assumption,
        what_was_correct=made.prevention,
        why=made.issue,
    )

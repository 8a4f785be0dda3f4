"""What guards and hooks decided, as it counts for the job: pure functions of its record.

They are asked in activities, where the content is; a gate's or phase's own rules are in
`workflows.gates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from protocol.proof import PROOF_GUARD
from protocol.record import JobRecord, WaitState
from protocol.requests import GuardOutcome
from protocol.text import one_line
from protocol.traces import Source
from workflows import activity_failures, traces

MOST_UNDECIDED = 3
"""Refusals in a row of a tool by who gives no verdict, before the job waits for a person."""
MOST_DISPROVED = 3
MOST_FOUND = 300
"""Characters."""
REPLY = "Not run: your reply was not accepted. {refusal}"


def note_refusal(
    job: JobRecord, guard: str, what: str, why: str, *, path: str | None = None, hook: bool = False
) -> str:
    """Count and note a refusal; gives the line that people see.

    The caller counts the refusal as one of the job's where the call is recorded.
    """
    job.guard_refusals = {**job.guard_refusals, guard: job.guard_refusals.get(guard, 0) + 1}
    if guard == PROOF_GUARD:
        found = one_line(why.removeprefix(f"Refused by {guard}: "), MOST_FOUND)
        job.disproved = [*job.disproved, found][-MOST_DISPROVED:]
    source: Source = "hook" if hook else "guard"
    happened = f"{what} was refused"
    traces.note_trace(job, "violation", source, guard, happened, why=why, tool=what, path=path)
    return f"step {job.step}: guard {guard} refused {what}: {' '.join(why.split())[:200]}"


def apply_guard_outcome(
    job: JobRecord, outcome: GuardOutcome, what: str, why: str, path: str | None = None
) -> list[str]:
    """Take in what the guards of a call decided; gives the lines that people see."""
    lines = [f"step {job.step}: {remark}" for remark in outcome.remarks]
    if outcome.bypassed_guard:
        lines.append(use_bypass(job, outcome.bypassed_guard, what, path))
    if outcome.guard:
        lines.append(note_refusal(job, outcome.guard, what, why, path=path, hook=outcome.hook))
    note_trials(job, outcome.trials, what, path)
    return lines


def count_undecided(job: JobRecord, outcome: GuardOutcome, tool: str, why: str) -> WaitState | None:
    """Count refusals in a row by who failed itself; how the job waits once they are too many.

    The first go to the model, whose work may be why a check does not end.
    """
    others = {name: count for name, count in job.undecided.items() if name != tool}
    if not (outcome.guard and outcome.undecided):
        job.undecided = others
        return None
    count = job.undecided.get(tool, 0) + 1
    job.undecided = {**others, tool: count}
    if count < MOST_UNDECIDED:
        return None
    return activity_failures.without_verdict(outcome.guard, tool, why, count)


def note_trials(job: JobRecord, trials: Sequence[str], what: str, path: str | None = None) -> None:
    """Note what guards on trial would have refused; it was not."""
    for guard in trials:
        happened = f"{what} would have been refused"
        traces.note_trace(
            job, "violation", "guard", guard, happened, tool=what, path=path, trial=True
        )


def use_bypass(job: JobRecord, guard: str, what: str, path: str | None = None) -> str:
    """A bypass is used up; gives the line that people see."""
    reason = job.bypasses.get(guard, "")
    job.bypasses = {name: why for name, why in job.bypasses.items() if name != guard}
    happened = f"{what} was let through"
    traces.note_trace(job, "approval", "person", guard, happened, why=reason, tool=what, path=path)
    return f"step {job.step}: bypass of {guard} let {what} through" + (
        f" ({reason[:200]})" if reason else ""
    )


@contextmanager
def restoring_bypasses(job: JobRecord, before: dict[str, str]) -> Iterator[None]:
    """Around the end of a phase or job whose guards have let it pass. Where it does not come they
    will be asked again, and the bypasses that they took since `before` hold again.
    """
    used = {name: why for name, why in before.items() if name not in job.bypasses}
    number = job.state.phase.number
    try:
        yield
    finally:
        if job.result is None and job.state.phase.number == number:
            job.bypasses = {**used, **job.bypasses}


def grant_bypass(job: JobRecord, payload: dict[str, Any]) -> str | None:
    """Let the next refusal of a guard be passed over; or why there is nothing to pass over."""
    guard = payload["guard"]
    if guard not in job.guard_refusals:
        known = ", ".join(sorted(job.guard_refusals)) or "none"
        return f"guard {guard} has refused nothing; those that have are: {known}"
    job.bypasses = {**job.bypasses, guard: payload.get("reason") or "no reason given"}
    job.add_correction(
        f"A person lets through once what {guard} refused. If you still need it, do it again now."
    )
    return None

"""Apply the decisions of guards and hooks to the job's record; pure functions.

Guards run in activities, where the content is. The rules of gates and phases are in
`workflows.rules.gates`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.proof import PROOF_GUARD
from protocol.requests import GuardOutcome
from protocol.short_text import shorten_to_start
from protocol.trace_requests import Source
from protocol.waiting import WaitState
from workflows.runtime import trace_notes, wait_states

MOST_UNDECIDED = 3
"""Refusals in a row of a tool by a voter without a verdict, before the job waits for a person."""
MOST_DISPROVED = 3
MOST_FOUND = 300
"""Longest finding, in characters."""
REPLY = "Not run: your reply was not accepted. {refusal}"


def record_guard_refusal(
    job: JobRecord,
    guard: str,
    what: str,
    finding: str,
    *,
    path: str | None = None,
    hook: bool = False,
) -> Notice:
    """Count and record a refusal; return the notice for people.

    The caller counts it among the job's refusals when it records the call.
    """
    job.guard_refusals = {**job.guard_refusals, guard: job.guard_refusals.get(guard, 0) + 1}
    if guard == PROOF_GUARD:
        job.disproved = [*job.disproved, shorten_to_start(finding.strip(), MOST_FOUND)][
            -MOST_DISPROVED:
        ]
    source: Source = "hook" if hook else "guard"
    happened = f"{what} was refused"
    trace_notes.note_trace(
        job, "violation", source, guard, happened, why=finding, tool=what, path=path
    )
    text = f"guard {guard} refused {what}: {' '.join(finding.split())[:200]}"
    return Notice(text=text, topic="refused call", step=job.step)


def apply_guard_outcome(
    job: JobRecord, outcome: GuardOutcome, what: str, path: str | None = None
) -> list[Notice]:
    """Apply the decisions of a call's guards; return the notices for people."""
    lines = [Notice(text=remark, step=job.step) for remark in outcome.remarks]
    if outcome.bypassed_guard:
        lines.append(use_guard_bypass(job, outcome.bypassed_guard, what, path))
    if outcome.guard:
        lines.append(
            record_guard_refusal(
                job, outcome.guard, what, outcome.finding, path=path, hook=outcome.hook
            )
        )
    record_guard_trials(job, outcome.trials, what, path)
    return lines


def count_undecided_votes(job: JobRecord, outcome: GuardOutcome, tool: str) -> WaitState | None:
    """Count refusals in a row by voters that failed themselves; return how the job waits at too
    many.

    The first ones go to the model, whose work may be why a check does not end.
    """
    others = {name: count for name, count in job.undecided.items() if name != tool}
    if not (outcome.guard and outcome.undecided):
        job.undecided = others
        return None
    count = job.undecided.get(tool, 0) + 1
    job.undecided = {**others, tool: count}
    if count < MOST_UNDECIDED:
        return None
    return wait_states.verdict_failure_wait(outcome.guard, tool, outcome.finding, count)


def record_guard_trials(
    job: JobRecord, trials: Sequence[str], what: str, path: str | None = None
) -> None:
    """Record what guards on trial would have refused."""
    for guard in trials:
        happened = f"{what} would have been refused"
        trace_notes.note_trace(
            job, "violation", "guard", guard, happened, tool=what, path=path, trial=True
        )


def use_guard_bypass(job: JobRecord, guard: str, what: str, path: str | None = None) -> Notice:
    """Use up a bypass; return the notice for people."""
    reason = job.bypasses.get(guard, "")
    job.bypasses = {name: why for name, why in job.bypasses.items() if name != guard}
    happened = f"{what} was let through"
    trace_notes.note_trace(
        job, "approval", "person", guard, happened, why=reason, tool=what, path=path
    )
    for_reason = f" ({reason[:200]})" if reason else ""
    return Notice(text=f"bypass of {guard} let {what} through{for_reason}", step=job.step)


@contextmanager
def restoring_guard_bypasses(job: JobRecord, before: dict[str, str]) -> Iterator[None]:
    """Restore bypasses if the phase or job that guards let pass does not end.

    The guards will be asked again, so the bypasses used since `before` hold again.
    """
    used = {name: why for name, why in before.items() if name not in job.bypasses}
    number = job.state.phase.number
    try:
        yield
    finally:
        if job.result is None and job.state.phase.number == number:
            job.bypasses = {**used, **job.bypasses}


def guard_bypass_refusal_reason(job: JobRecord, guard: str) -> str:
    """Return why there is nothing to bypass; empty if there is."""
    if guard in job.guard_refusals:
        return ""
    known = ", ".join(sorted(job.guard_refusals)) or "none"
    return f"guard {guard} has refused nothing; those that have are: {known}"


def grant_guard_bypass(job: JobRecord, payload: dict[str, Any]) -> None:
    """Let a guard's next refusal be bypassed."""
    guard = payload["guard"]
    job.bypasses = {**job.bypasses, guard: payload.get("reason") or "no reason given"}
    job.add_correction(
        f"A person lets through once what {guard} refused. If you still need it, do it again now."
    )

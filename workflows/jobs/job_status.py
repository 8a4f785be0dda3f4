"""The status of a job: the answer to the query `status`, and the report to its project."""

from datetime import UTC, datetime

from protocol.job_record import JobRecord
from protocol.project_units import ChildReport
from protocol.status import GuardCounts, JobStatus, PhaseCheckpoint, RemoteStatus, state_fields
from protocol.waiting import WaitState
from workflows.jobs import approvals, questions
from workflows.rules import budget, reservations
from workflows.runtime.inbox import Inbox

SHARED = (
    *("agent", "model", "title", "root", "status", "step", "usage", "clarification"),
    *("approvals", "nudges", "rewinds", "origin", "result"),
)
"""Fields that the status has as the record has them."""


def job_status_answer(job: JobRecord, inbox: Inbox, job_id: str = "") -> JobStatus:
    """Return the answer to the query, to which `starter.py show --json` adds some fields."""
    return JobStatus(
        job_id=job_id,
        remote=RemoteStatus(url=job.remote, behind=job.push_failure) if job.remote else None,
        **{name: getattr(job, name) for name in SHARED},
        unproven=job.usage.spend - job.progress.spent,
        waiting=job.wait,
        **state_fields(job.state, ended=job.result is not None),
        waits_until=utc_time_text(job.timer.ends) if job.timer else None,
        limits=budget.limits_with_usage(job),
        refused_completions=job.course.completion_refusals,
        reviewing=job.review is not None,
        helpers=len(reservations.helpers_needing_budget(job)),
        approval=approvals.current_approval(job),
        pausing=bool(job.pausing),
        unread=[received.signal for received in inbox.signals],
        people=job.acts,
        correction=job.next_correction,
        # A signal may be refused during a long step.
        refusals=job.refusals + inbox.refused,
        guards=GuardCounts(refused=job.guard_refusals, bypasses=job.bypasses),
        notices=inbox.notices,
        checkpoint=job.commit,
        checkpoints=[PhaseCheckpoint(phase=n, id=commit) for n, commit in job.phases.items()],
    )


def preparing_job_status(inbox: Inbox, waiting: WaitState | None, job_id: str = "") -> JobStatus:
    """Return the status of a job that has not begun."""
    return JobStatus(
        job_id=job_id,
        status="waiting" if waiting else "running",
        waiting=waiting,
        refusals=inbox.refused,
        notices=inbox.notices,
    )


def job_status_report(job: JobRecord, job_id: str) -> ChildReport:
    """Return the report to the project that the job works for."""
    waits, phase = job.wait, job.state.phase
    # In the first phase there is nothing to continue from.
    phase_start = job.phases.get(phase.number) if phase.number > 1 else None
    return ChildReport(
        job=job_id,
        status=job.status,
        waiting=waits.reason if waits else None,
        asks=questions.pending_question_reason(job),
        message=waits.message[:2000] if waits else "",
        remedy=waits.remedy[:2000] if waits else "",
        command=waits.command[:1000] if waits else "",
        limit=waits.limit if waits else "",
        phase=f"phase {phase.number} ({phase.kind}) {phase.name}"[:200],
        disproved=job.disproved,
        number=phase.number if phase_start else 0,
        checkpoint=phase_start or "",
        usage=job.usage,
        seconds=job.seconds,
    )


def preparing_job_status_report(waiting: WaitState, job_id: str) -> ChildReport:
    """Return the report of a job that cannot begin yet."""
    return ChildReport(
        job=job_id,
        status="waiting",
        waiting=waiting.reason,
        message=waiting.message[:2000],
        remedy=waiting.remedy[:2000],
        command=waiting.command[:1000],
    )


def utc_time_text(seconds: float) -> str:
    """Return `2026-11-25T11:20:03Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

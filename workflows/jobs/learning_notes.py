"""What a job leaves for learning: its traces, and reflections on failed attempts."""

from protocol.endings import ReflectReply
from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.trace_requests import MOST_AT_A_TIME
from workflows.jobs.job_steps import JobSteps
from workflows.rules import budget, reservations
from workflows.runtime import trace_notes, wait_states
from workflows.runtime.activity_calls import count_unfinished_replies
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.inbox import Inbox

KEPT = "traces are kept for later: {why}"


async def store_learning_traces(job: JobRecord, steps: JobSteps, inbox: Inbox) -> bool:
    """Store pending traces; return whether the store took them all.

    The rest stays in the record and goes with the next.
    """
    while handed := job.traces[:MOST_AT_A_TIME]:
        try:
            await steps.store_traces(job, handed)
        except StepFailed as failed:
            if not job.deferred_traces:
                inbox.notice(KEPT.format(why=failed.message), "traces")
            job.deferred_traces = len(job.traces)
            if trace_notes.is_trace_record_full(job) and job.waiting is None:
                job.waiting = wait_states.STORE
            return False
        job.traces = job.traces[len(handed) :]
        job.deferred_traces = max(0, job.deferred_traces - len(handed))
    return True


async def note_failure_reflection(
    job: JobRecord,
    steps: JobSteps,
    inbox: Inbox,
    issue: str,
    call: int | None = None,
    *,
    has_findings: bool = False,
) -> None:
    """Reflect on a failed attempt; without an answer it is skipped."""
    again = job.reflected_step == job.step + 1
    if (
        again
        or not job.limits.reflection
        or budget.exceeded_limit(job, reservations.reflection_reservation(job))
    ):
        return
    try:
        reflection = await steps.reflect_on_failure(job, issue, call, has_findings=has_findings)
    except StepFailed as failed:
        count_unfinished_replies(job, failed)
        reflection = ReflectReply(commit=job.commit, at=job.at, failure=failed.message)
    job.add_usage(reflection.usage)
    if reflection.failure:
        inbox.notice(Notice(text=f"no reflection. {reflection.failure}", step=job.step))
        return
    job.advance_to(reflection.commit, reflection.at)
    job.context = reflection.context
    job.reflected_step = job.step + 1
    by = "generic reflection" if reflection.generic else "reflection"
    trace_notes.note_trace(
        job,
        "outcome",
        "agent",
        by,
        reflection.assumption,
        what_was_correct=reflection.prevention,
        why=reflection.issue,
    )

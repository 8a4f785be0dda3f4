"""Calls that their MCP server has not finished: pure functions of the job's record.

The job stays at such a call. Either its server asks a question, which a person answers like one of
the agent's; or it runs a task, and a durable timer runs until the next poll.
"""

from protocol.job_record import JobRecord, Question
from protocol.requests import Pending
from protocol.waiting import WaitState, WaitTimer
from workflows.jobs import questions


def note_pending_progress(job: JobRecord, latest: Pending, now: float) -> None:
    """Record the progress of the call at hand."""
    before, question = job.pending, job.clarification.pending
    job.pending = latest
    job.timer = None if latest.question else WaitTimer(started=now, ends=now + latest.seconds)
    if question is None:
        return
    if before and latest.question and latest.turn == before.turn:
        # Another question of the same turn, or an unanswered one: the deadline stays.
        if latest.asks == before.asks:
            question.untraced = None  # The answer did not fit, so nobody should learn from it.
        questions.note_answer_trace(job, question)
        question.id = f"{job.question_id}-{job.clarification.used}.{len(latest.answers)}"
        question.question, question.default = latest.question, latest.default
        question.answer = None if now < question.until else ""
    else:
        _resolve_pending_call(job)


def clear_pending_call(job: JobRecord) -> None:
    """Clear the pending state once the call at hand is recorded."""
    if job.pending:
        job.pending = job.timer = None
        _resolve_pending_call(job)


def pending_call_wait(job: JobRecord, job_id: str, now: float) -> WaitState | None:
    """Return the wait for a person's answer to the server; None when the call can continue.

    When the job may ask no more questions, the server gets an empty answer at once.
    """
    pending, clarification = job.pending, job.clarification
    if pending is None or not pending.question:
        return None
    if clarification.pending is None and clarification.used < job.limits.clarifications:
        clarification.used += 1
        clarification.pending = Question(
            id=f"{job.question_id}-{clarification.used}",
            question=pending.question,
            default=pending.default,
            until=int(now + job.limits.clarification_hours * 3600 + 0.5),
            server=pending.server,
        )
    question = clarification.pending
    if question and question.answer is None:
        return questions.waiting_for_answer(question, job_id)
    job.pending = pending.model_copy(update={"answer": question.answer if question else ""})
    return None


def _resolve_pending_call(job: JobRecord) -> None:
    if question := job.clarification.pending:
        questions.note_answer_trace(job, question)
        job.clarification.pending = None
        job.clarification.resolved += 1

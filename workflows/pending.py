"""Calls that their server has not finished: pure functions of the job's record.

Such a call stays the one at hand. Its server asks something, which a person answers like a question
of the agent; or it works on a task, for which a durable timer runs until it is asked again.
"""

from __future__ import annotations

from protocol.record import JobRecord, Question, WaitState, WaitTimer
from protocol.requests import Pending
from workflows import questions


def take_reply(job: JobRecord, told: Pending, now: float) -> None:
    """Note how far the call is now."""
    before, question = job.pending, job.clarification.pending
    job.pending = told
    job.timer = None if told.question else WaitTimer(started=now, ends=now + told.seconds)
    if question is None:
        return
    if before and told.question and told.turn == before.turn:
        # One more of its turn, or one that was not answered yet: for the rest of its time.
        question.id = f"{questions.question_id(job)}-{job.clarification.used}.{len(told.answers)}"
        question.question, question.default = told.question, told.default
        question.answer = None if now < question.until else ""
    else:
        _resolve(job)


def settle(job: JobRecord) -> None:
    """The call at hand is recorded."""
    if job.pending:
        job.pending = job.timer = None
        _resolve(job)


def waits_for_answer(job: JobRecord, job_id: str, now: float) -> WaitState | None:
    """How the job waits for a person to answer the server; None once there is something to say.

    Where no question can be put to people any more, the server hears at once that nobody answers.
    """
    told, asked = job.pending, job.clarification
    if told is None or not told.question:
        return None
    if asked.pending is None and asked.used < job.limits.clarifications:
        asked.used += 1
        asked.pending = Question(
            id=f"{questions.question_id(job)}-{asked.used}",
            question=told.question,
            default=told.default,
            until=int(now + job.limits.clarification_hours * 3600 + 0.5),
            server=told.server,
        )
    question = asked.pending
    if question and question.answer is None:
        return questions.waiting_for_answer(question, job_id)
    job.pending = told.model_copy(update={"answer": question.answer if question else ""})
    return None


def _resolve(job: JobRecord) -> None:
    if job.clarification.pending:
        job.clarification.pending = None
        job.clarification.resolved += 1

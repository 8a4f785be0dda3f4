"""Questions to people, of the agent and of MCP servers: pure functions of the job's record.

A call that needs a person stays current until the person has decided; then it is answered, run or
refused like any other. The open question is in the record, so pause, continue-as-new and a crash
keep it. Whatever ends the current reply (a rewind, a lost checkpoint) drops it.

So does a call that its MCP server has not finished: either the server asks a question, which a
person answers like one of the agent's, or it runs a task, and a timer runs until the next poll.
"""

from datetime import UTC, datetime

from protocol.job_record import JobRecord, Question
from protocol.payloads import ReceivedSignal
from protocol.requests import Pending, ShowCallReply
from protocol.short_text import one_line, shell_quoted
from protocol.trace_requests import CLARIFICATION
from protocol.waiting import WaitReason, WaitState, WaitTimer
from workflows.jobs.approvals import SHOWN, current_approval, decide_approval, expire_approval
from workflows.runtime import trace_notes

NOTED = 200
"""Most characters of a question, and of its default, in a notice."""
ENOUGH = (
    "No more questions can be put to people in this job. Use your best judgement, and note the "
    "assumption in workspace.md."
)


def ask_question(job: JobRecord, shown: ShowCallReply, now: float) -> None:
    """Ask people the current question."""
    job.clarification.used += 1
    job.clarification.pending = Question(
        id=job.question_id,
        question=shown.arguments["question"],
        default=shown.arguments["default"],
        until=int(now + job.limits.clarification_hours * 3600 + 0.5),
    )


def question_time_left(job: JobRecord, now: float) -> float | None:
    """Return the seconds until the job continues by itself; None if only a person lets it."""
    reason = job.waiting.reason if job.waiting else None
    until: int | None = None
    if reason == "clarification" and job.clarification.pending:
        until = job.clarification.pending.until
    elif reason == "approval" and (approval := current_approval(job)):
        until = approval.until
    return None if until is None else max(1.0, until - now)


def answer_expired_question(job: JobRecord, now: float) -> str:
    """Use the default answer after the deadline; return a notice."""
    reason = job.waiting.reason if job.waiting else None
    job.waiting = None
    if reason == "approval" and (approval := current_approval(job)):
        return expire_approval(job, approval, now)
    if not (question := job.clarification.pending):
        return "no question is open any more"
    if question.server:
        question.answer = ""
        return f"question {question.id} of {question.server}: nobody answered in time"
    question.answer = f"Nobody answered in time. Go on with your default: {question.default}"
    return (
        f"question {question.id}: nobody answered in time: {one_line(question.question, NOTED)} "
        f"The agent's default holds: {one_line(question.default, NOTED)}"
    )


def waiting_for_answer(question: Question, job_id: str) -> WaitState:
    """Return how the job waits for the answer to a question."""
    until = datetime.fromtimestamp(question.until, UTC)
    command = f'starter.py answer {shell_quoted(job_id)} "your answer"'
    return WaitState(
        reason="clarification",
        message=f"{_asker_name(question)} asks: {one_line(question.question, SHOWN)} "
        f"Without an answer it "
        f"goes on with its default at {until:%Y-%m-%d %H:%M} UTC.",
        remedy=f"`{command}`, or the signal answer with "
        f'`{{"id": "{question.id}", "text": "your answer"}}`.',
        command=command,
        about={"id": question.id, "question": question.question, "default": question.default},
    )


def _asker_name(question: Question) -> str:
    return f"The MCP server {question.server}" if question.server else "The agent"


def pending_question_reason(job: JobRecord) -> WaitReason | None:
    """Return what is needed from a person, whatever the job waits for."""
    question, approval = job.clarification.pending, current_approval(job)
    if question and question.answer is None:
        return "clarification"
    return "approval" if approval and approval.approved is None else None


def take_question_answer(job: JobRecord, received: ReceivedSignal, now: float) -> None:
    """Record a person's answer, which has a question."""
    approval, question = current_approval(job), job.clarification.pending
    if received.signal == "answer" and question:
        text = received.payload["text"]
        question.answer = (text or "decline") if question.server else f"A person answers: {text}"
        question.untraced = text
        if not question.server:
            note_answer_trace(job, question)
    elif approval:
        decide_approval(job, approval, received, now)
    if job.waiting and job.waiting.reason in ("clarification", "approval"):
        job.waiting = None


def note_answer_trace(job: JobRecord, question: Question) -> None:
    """Add a trace of a person's answer, unless it has one or nobody answered."""
    if (text := question.untraced) is None:
        return
    question.untraced = None
    happened = f"{_asker_name(question)} asked: {question.question}"
    trace_notes.note_trace(
        job,
        "correction",
        "person",
        CLARIFICATION,
        happened,
        what_was_correct=text,
        why=question.question,
    )


def drop_questions(job: JobRecord) -> list[str]:
    """Drop open questions of a reply that is gone; return notices about them."""
    notices = []
    if question := job.clarification.pending:
        job.clarification.pending = None
        notices.append(f"the question {question.id} was dropped: {question.question}")
    if (approval := current_approval(job)) and approval.approved is None:
        notices.append(f"the request {approval.id} to approve {approval.tool} was dropped")
    job.approval = None
    return notices


def question_mismatch_reason(job: JobRecord, received: ReceivedSignal) -> str:
    """Return why a person's answer has no question; empty if it has one."""
    approval, question = current_approval(job), job.clarification.pending
    if received.signal == "answer":
        kind = "question"
        open_id = question.id if question and question.answer is None else None
    else:
        kind = "request for approval"
        open_id = approval.id if approval and approval.approved is None else None
    if why := answer_id_mismatch_reason(kind, received.payload.get("id"), open_id):
        return why
    unsigned = received.signal == "approve" and not received.payload.get("signature")
    if approval and approval.signers and unsigned:
        who = " or ".join(approval.signers)
        return f"it takes the signature of {who}; --key names the private ssh key of one of them"
    return ""


def answer_id_mismatch_reason(kind: str, sent_id: str | None, open_id: str | None) -> str:
    """Return why an answer with this id does not fit the open question; empty if it does."""
    if open_id is None:
        return f"no {kind} is open"
    if sent_id not in (None, open_id):
        return f"no {kind} {sent_id[:40]!r} is open; the open one is {open_id!r}"
    return ""


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
        note_answer_trace(job, question)
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
        return waiting_for_answer(question, job_id)
    job.pending = pending.model_copy(update={"answer": question.answer if question else ""})
    return None


def _resolve_pending_call(job: JobRecord) -> None:
    if question := job.clarification.pending:
        note_answer_trace(job, question)
        job.clarification.pending = None
        job.clarification.resolved += 1

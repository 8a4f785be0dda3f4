"""Questions to people: clarification and approval. Pure functions of the job's record.

A call that needs a person stays current until the person has decided; then it is answered, run or
refused like any other. The open question is in the record, so pause, continue-as-new and a crash
keep it. Whatever ends the current reply (a rewind, a lost checkpoint) drops it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from protocol.job_record import Approval, JobRecord, Question
from protocol.payloads import ReceivedSignal
from protocol.requests import ShowCallReply
from protocol.short_text import one_line, shell_quoted
from protocol.trace_requests import QUESTION_PREFIX
from protocol.waiting import WaitReason, WaitState
from workflows import traces

SIGNALS = ("answer", "approve", "deny")
ENOUGH = (
    "No more questions can be put to people in this job. Use your best judgement, and note the "
    "assumption in workspace.md."
)
SHOWN = 300
MOST_DECISIONS = 20
MOST_ARGUMENTS = 10
MOST_ARGUMENT = 200
"""Most characters of an argument in a decided call."""


def question_id(job: JobRecord) -> str:
    """Return the id of a question about the current call.

    It contains the checkpoint, so that after a reset an old answer, which Temporal delivers again,
    fits only the question that it was given to.
    """
    return job.commit[:8]


# Clarification


def ask_question(job: JobRecord, shown: ShowCallReply, now: float) -> None:
    """Ask people the current question."""
    job.clarification.used += 1
    job.clarification.pending = Question(
        id=question_id(job),
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
        return _expire_approval(job, approval, now)
    if not (question := job.clarification.pending):
        return "no question is open any more"
    if question.server:
        question.answer = ""
        return f"question {question.id} of {question.server}: nobody answered in time"
    question.answer = f"Nobody answered in time. Go on with your default: {question.default}"
    return f"question {question.id}: nobody answered in time, the agent's default holds"


def waiting_for_answer(question: Question, job_id: str) -> WaitState:
    """Return how the job waits for the answer to a question."""
    until = datetime.fromtimestamp(question.until, UTC)
    return WaitState(
        reason="clarification",
        message=f"{_asker_name(question)} asks: {one_line(question.question, SHOWN)} "
        f"Without an answer it "
        f"goes on with its default at {until:%Y-%m-%d %H:%M} UTC.",
        remedy=f'`starter.py answer {shell_quoted(job_id)} "your answer"`, or the signal answer '
        f'with `{{"id": "{question.id}", "text": "your answer"}}`.',
        about={"id": question.id, "question": question.question, "default": question.default},
    )


def _asker_name(question: Question) -> str:
    return f"The MCP server {question.server}" if question.server else "The agent"


# Approval


def current_approval(job: JobRecord) -> Approval | None:
    """Return the request for approval of the current call, if there is one."""
    approval = job.approval
    return (
        approval
        if approval and (approval.step, approval.call_index) == (job.step, job.next_call)
        else None
    )


def open_approval_question(
    job: JobRecord, tool: str, shown: ShowCallReply, question: str, guard: str, now: float
) -> None:
    """Ask people whether the current call may run."""
    hours = job.limits.approve_hours
    job.approval = Approval(
        id=question_id(job),
        step=job.step,
        call_index=job.next_call,
        tool=tool,
        arguments=shown.arguments,
        question=question,
        guard=guard,
        until=int(now + hours * 3600 + 0.5) if hours else None,
    )


def waiting_for_approval_answer(approval: Approval, job_id: str) -> WaitState:
    """Return how the job waits for a person to approve a call."""
    job = shell_quoted(job_id)
    message = f"The agent wants to call {approval.tool}. {one_line(approval.question, SHOWN)}"
    if approval.until is not None:
        until = datetime.fromtimestamp(approval.until, UTC)
        message += f" Without an answer it is denied at {until:%Y-%m-%d %H:%M} UTC."
    return WaitState(
        reason="approval",
        message=message,
        remedy=f"`starter.py approve {job} --id {approval.id}` or `starter.py deny {job} --id "
        f'{approval.id} --reason "why"`, or the signals approve and deny with '
        f'`{{"id": "{approval.id}", '
        '"reason": "why"}`.',
        about={
            "id": approval.id,
            "guard": approval.guard,
            "question": approval.question,
            "call": approval.tool,
        }
        | {f"  {name}": value for name, value in approval.arguments.items()},
    )


def approval_denial_text(approval: Approval) -> str:
    """Return the message to the model about a call that a person did not approve."""
    if approval.expired:
        return (
            f"Nobody approved this call of {approval.tool} in time, which counts as a no. "
            "Do not try "
            "it again in this form; do the todo in another way, or say in `unresolved` what is "
            "left undone."
        )
    return (
        f"A person did not approve this call of {approval.tool}. Reason: "
        f"{approval.reason[:1500]} Do not "
        "try it again in this form; do the todo in another way."
    )


# Signals


def pending_question_reason(job: JobRecord) -> WaitReason | None:
    """Return what is needed from a person, whatever the job waits for."""
    question, approval = job.clarification.pending, current_approval(job)
    if question and question.answer is None:
        return "clarification"
    return "approval" if approval and approval.approved is None else None


def take_question_answer(job: JobRecord, received: ReceivedSignal, now: float) -> str | None:
    """Record a person's answer; return the reason if it cannot be accepted."""
    approval, question = current_approval(job), job.clarification.pending
    if received.signal == "answer":
        is_open = question is not None and question.answer is None
        open_id = question.id if question and is_open else None
    else:
        open_id = approval.id if approval and approval.approved is None else None
    if why := _question_mismatch_reason(received, open_id):
        return why
    if received.signal == "answer" and question:
        text = received.payload["text"]
        question.answer = (text or "decline") if question.server else f"A person answers: {text}"
        happened = f"{QUESTION_PREFIX}{question.question}"
        traces.note_trace(
            job, "correction", "person", "clarification", happened, what_was_correct=text
        )
    elif approval:
        approval.approved = received.signal == "approve"
        approval.reason = received.payload.get("reason", "")
        approval.by = received.payload.get("by", "")
        _record_approval_decision(job, approval, now)
        named = ", ".join(f"{name}={value}" for name, value in approval.arguments.items())
        verdict = "approved" if approval.approved else "denied"
        happened = f"{received.payload.get('by') or 'A person'} {verdict} {approval.tool}: {named}"
        # A denial is a correction, from which a guard may be made.
        traces.note_trace(
            job,
            "approval" if approval.approved else "correction",
            "person",
            approval.guard,
            happened,
            what_was_correct="" if approval.approved else approval.reason,
            why=approval.reason,
            tool=approval.tool,
            path=approval.arguments.get("path"),
        )
        if approval.approved and approval.reason:
            job.add_correction(f"A person approved {approval.tool}: {approval.reason[:1500]}")
    if job.waiting and job.waiting.reason in ("clarification", "approval"):
        job.waiting = None
    return None


def answered_approval_line(approval: Approval) -> str:
    """Return `ada@host approved move_file (1a2b3c4d) at 2026-11-25 11:20:03 UTC: old=a.md,
    new=b.md`.
    """
    when = datetime.fromtimestamp(approval.decided or 0, UTC)
    did, detail = approval_decision_words(approval)
    who = f"{approval.by or 'a person'} {did} ({approval.id})"
    if approval.expired:
        who = f"nobody approved {approval.tool} ({approval.id}) in time, it was denied"
    return f"{who} at {when:%Y-%m-%d %H:%M:%S} UTC: {detail}"


def approval_decision_words(approval: Approval) -> tuple[str, str]:
    """Return `approved move_file` and `old=a.md, new=b.md. Reason: fine`."""
    named = ", ".join(f"{name}={value}" for name, value in approval.arguments.items())
    reason = "" if approval.expired else approval.reason
    did = f"{'approved' if approval.approved else 'denied'} {approval.tool}"
    return did, f"{named}. Reason: {reason}" if reason else named


def _record_approval_decision(job: JobRecord, approval: Approval, now: float) -> None:
    """Record who decided what, and when, after the call has run or was refused."""
    approval.decided = int(now)
    cut = {name: one_line(value, MOST_ARGUMENT) for name, value in approval.arguments.items()}
    short = approval.model_copy(
        update={
            "arguments": dict(list(cut.items())[:MOST_ARGUMENTS]),
            "question": one_line(approval.question, SHOWN),
            "reason": one_line(approval.reason, SHOWN),
        }
    )
    job.approvals = [*job.approvals, short][-MOST_DECISIONS:]


def _expire_approval(job: JobRecord, approval: Approval, now: float) -> str:
    """Deny a call that nobody approved in time; return a notice."""
    approval.approved, approval.expired = False, True
    hours = f"{job.limits.approve_hours:g} hours" if job.limits.approve_hours else "time"
    approval.reason = f"nobody approved it within {hours}"
    _record_approval_decision(job, approval, now)
    traces.note_trace(
        job,
        "decision",
        "gate",
        "approval",
        f"{approval.tool} was denied, since {approval.reason}",
        tool=approval.tool,
        path=approval.arguments.get("path"),
    )
    return answered_approval_line(approval)


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


def _question_mismatch_reason(received: ReceivedSignal, open_id: str | None) -> str | None:
    sent_id = received.payload.get("id")
    kind = "question" if received.signal == "answer" else "request for approval"
    if open_id is None:
        return f"signal {received.signal}: no {kind} is open"
    if sent_id is not None and sent_id != open_id:
        return (
            f"signal {received.signal}: no {kind} {sent_id[:40]!r} is open; the open "
            f"one is {open_id!r}"
        )
    return None

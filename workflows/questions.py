"""Questions to people: clarification and approval. Pure functions of the job's record.

A call that needs a person stays the one at hand until that person has spoken; then it is answered,
carried out or refused like any other. What is open is in the record, so pause, continue-as-new and
a crash keep it; what ends the reply at hand (a rewind, a lost checkpoint) drops it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from protocol.record import Approval, JobRecord, Letter, Question, Waiting, WaitReason
from protocol.requests import ShownCall
from protocol.text import one_line
from protocol.traces import ASKED
from workflows import traces
from workflows.parking import quoted

SIGNALS = ("answer", "approve", "deny")
ENOUGH = (
    "No more questions can be put to people in this job. Use your best judgement, and note the "
    "assumption in workspace.md."
)
SHOWN = 300


def id_of(job: JobRecord) -> str:
    """Id of a question about the call at hand.

    Made of the checkpoint it stands on, so that after a reset of the workflow an old answer, which
    Temporal delivers again, fits only the very question it was given to.
    """
    return job.commit[:8]


# Clarification


def ask(job: JobRecord, shown: ShownCall, now: float) -> None:
    """Put the question at hand to people."""
    job.clarification.used += 1
    job.clarification.pending = Question(
        id=id_of(job),
        question=shown.arguments["question"],
        default=shown.arguments["default"],
        until=int(now + job.limits.clarification_hours * 3600 + 0.5),
    )


def time_left(job: JobRecord, now: float) -> float | None:
    """Seconds until the job goes on by itself; None when it waits for something else."""
    pending = job.clarification.pending
    if pending is None or not job.waiting or job.waiting.reason != "clarification":
        return None
    return max(1.0, pending.until - now)


def time_out(job: JobRecord) -> str:
    """Nobody has answered in time: the job goes on with the default; gives a notice."""
    job.waiting = None
    if not (question := job.clarification.pending):
        return "no question is open any more"
    if question.server:
        question.answer = ""
        return f"question {question.id} of {question.server}: nobody answered in time"
    question.answer = f"Nobody answered in time. Go on with your default: {question.default}"
    return f"question {question.id}: nobody answered in time, the agent's default holds"


def waiting_for_answer(question: Question, job_id: str) -> Waiting:
    """How the job waits for the answer to a question."""
    until = datetime.fromtimestamp(question.until, UTC)
    return Waiting(
        reason="clarification",
        message=f"{_who(question)} asks: {one_line(question.question, SHOWN)} Without an answer it "
        f"goes on with its default at {until:%Y-%m-%d %H:%M} UTC.",
        remedy=f'`starter.py answer {quoted(job_id)} "your answer"`, or the signal answer '
        f'with `{{"id": "{question.id}", "text": "your answer"}}`.',
        about={"id": question.id, "question": question.question, "default": question.default},
    )


def _who(question: Question) -> str:
    return f"The MCP server {question.server}" if question.server else "The agent"


# Approval


def approval_at_hand(job: JobRecord) -> Approval | None:
    """The request for approval of the call at hand, if there is one."""
    asked = job.approval
    return asked if asked and (asked.step, asked.call) == (job.step, job.next_call) else None


def request_approval(
    job: JobRecord, tool: str, shown: ShownCall, question: str, guard: str
) -> None:
    """Ask people whether the call at hand may be carried out."""
    job.approval = Approval(
        id=id_of(job),
        step=job.step,
        call=job.next_call,
        tool=tool,
        arguments=shown.arguments,
        question=question,
        guard=guard,
    )


def waiting_for_approval(asked: Approval, job_id: str) -> Waiting:
    """How the job waits for a person to approve a call."""
    job = quoted(job_id)
    return Waiting(
        reason="approval",
        message=f"The agent wants to call {asked.tool}. {one_line(asked.question, SHOWN)}",
        remedy=f"`starter.py approve {job} --id {asked.id}` or `starter.py deny {job} --id "
        f'{asked.id} --reason "why"`, or the signals approve and deny with `{{"id": "{asked.id}", '
        '"reason": "why"}`.',
        about={"id": asked.id, "guard": asked.guard, "question": asked.question, "call": asked.tool}
        | {f"  {name}": value for name, value in asked.arguments.items()},
    )


def denied(asked: Approval) -> str:
    """What the model is told of a call that a person did not approve."""
    return (
        f"A person did not approve this call of {asked.tool}. Reason: {asked.reason[:1500]} Do not "
        "try it again in this form; do the todo in another way."
    )


# Letters


def pending_reason(job: JobRecord) -> WaitReason | None:
    """What is wanted of a person and not given yet, whatever the job waits for."""
    question, approval = job.clarification.pending, approval_at_hand(job)
    if question and question.answer is None:
        return "clarification"
    return "approval" if approval and approval.approved is None else None


def take(job: JobRecord, letter: Letter) -> str | None:
    """Enter what a person said; gives the reason when it cannot be taken."""
    approval, question = approval_at_hand(job), job.clarification.pending
    if letter.signal == "answer":
        is_open = question is not None and question.answer is None
        wanted = question.id if question and is_open else None
    else:
        wanted = approval.id if approval and approval.approved is None else None
    if why := _does_not_fit(letter, wanted):
        return why
    if letter.signal == "answer" and question:
        text = letter.payload["text"]
        question.answer = (text or "decline") if question.server else f"A person answers: {text}"
        happened = f"{ASKED}{question.question}"
        traces.note(job, "correction", "person", "clarification", happened, what_was_correct=text)
    elif approval:
        approval.approved = letter.signal == "approve"
        approval.reason = letter.payload.get("reason", "")
        named = ", ".join(f"{name}={value}" for name, value in approval.arguments.items())
        said = "approved" if approval.approved else "denied"
        happened = f"{letter.payload.get('by') or 'A person'} {said} {approval.tool}: {named}"
        # What a person does not want is a correction, from which a guard may be made.
        traces.note(
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
            job.correction = f"A person approved {approval.tool}: {approval.reason[:1500]}"
    if job.waiting and job.waiting.reason in ("clarification", "approval"):
        job.waiting = None
    return None


def drop(job: JobRecord) -> list[str]:
    """Forget what is open, since the reply that asked is gone; gives notices that say so."""
    notices = []
    if question := job.clarification.pending:
        job.clarification.pending = None
        notices.append(f"the question {question.id} was dropped: {question.question}")
    if (approval := approval_at_hand(job)) and approval.approved is None:
        notices.append(f"the request {approval.id} to approve {approval.tool} was dropped")
    job.approval = None
    return notices


def _does_not_fit(letter: Letter, wanted: str | None) -> str | None:
    given = letter.payload.get("id")
    kind = "question" if letter.signal == "answer" else "request for approval"
    if wanted is None:
        return f"signal {letter.signal}: no {kind} is open"
    if given is not None and given != wanted:
        return (
            f"signal {letter.signal}: no {kind} {given[:40]!r} is open; the open one is {wanted!r}"
        )
    return None

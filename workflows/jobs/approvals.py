"""Approval of calls by people: pure functions of the job's record."""

from datetime import UTC, datetime

from protocol.approval_statement import ApprovalStatement, arguments_digest
from protocol.job_record import Approval, JobRecord
from protocol.payloads import ReceivedSignal
from protocol.requests import ShowCallReply
from protocol.short_text import as_sentence, one_line, shell_quoted
from protocol.waiting import WaitState
from workflows.runtime import trace_notes

MOST_ASKED = 1900
"""Most characters of a question that people are asked: what would be published is in it."""
SHOWN = 300
"""Most characters of a question that has been decided."""
MOST_DECISIONS = 20
MOST_ARGUMENTS = 10
MOST_ARGUMENT = 200
"""Most characters of an argument in a decided call."""


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
    hours, id_ = job.limits.approve_hours, job.question_id
    if (earlier := current_approval(job)) and earlier.id == id_:
        # An answer that comes twice is one to the first question.
        id_ += "-2"
    job.approval = Approval(
        id=id_,
        step=job.step,
        call_index=job.next_call,
        tool=tool,
        arguments=shown.arguments,
        question=question,
        guard=guard,
        signers=shown.signers,
        digest=arguments_digest(shown.arguments, shown.digest) if shown.signers else "",
        until=int(now + hours * 3600 + 0.5) if hours else None,
    )


def waiting_for_approval_answer(approval: Approval, job_id: str) -> WaitState:
    """Return how the job waits for a person to approve a call."""
    job = shell_quoted(job_id)
    command = f"starter.py approve {job} --id {approval.id}"
    signals = "signal deny" if approval.signers else "signals approve and deny"
    request = f"The agent wants to call {approval.tool}."
    if approval.is_plan:
        request = "The agent has made its plan."
    message = f"{request} {one_line(approval.question, MOST_ASKED)}"
    if approval.signers:
        command += " --key ~/.ssh/id_ed25519"
        message += f" It takes the signature of {' or '.join(approval.signers)}."
    if approval.until is not None:
        until = datetime.fromtimestamp(approval.until, UTC)
        message += f" Without an answer it is denied at {until:%Y-%m-%d %H:%M} UTC."
    return WaitState(
        reason="approval",
        message=message,
        command=command,
        remedy=f"`{command}` or `starter.py deny {job} --id "
        f'{approval.id} --reason "why"`, or the {signals} with '
        f'`{{"id": "{approval.id}", '
        '"reason": "why"}`.',
        about={
            "id": approval.id,
            "guard": approval.guard,
            "question": approval.question,
            "call": approval.tool,
        }
        | ({"digest": approval.digest} if approval.signers else {})
        | {f"  {name}": value for name, value in approval.arguments.items()},
    )


def approval_denial_text(approval: Approval) -> str:
    """Return the message to the model about a call that a person did not approve."""
    if approval.is_plan:
        return (
            f"A person did not approve the plan. Reason: {as_sentence(approval.reason[:1500])} "
            "Revise plan.md accordingly, then hand over the list with todo_write again."
        )
    if approval.expired:
        return (
            f"Nobody approved this call of {approval.tool} in time, which counts as a no. "
            "Do not try "
            "it again in this form; do the todo in another way, or say in `unresolved` what is "
            "left undone."
        )
    what_next = "Do not try it again in this form; do the todo in another way."
    if approval.tool == "job_complete":
        what_next = "Do what the reason asks for, then call job_complete again."
    return (
        f"A person did not approve this call of {approval.tool}. Reason: "
        f"{as_sentence(approval.reason[:1500])} {what_next}"
    )


def signed_statement(
    approval: Approval, received: ReceivedSignal, job_id: str
) -> ApprovalStatement:
    """Return what the signature of an approval has to be over."""
    return ApprovalStatement(
        job=job_id,
        request=approval.id,
        call=approval.tool,
        arguments=approval.digest,
        expires=received.payload.get("expires", ""),
    )


def decide_approval(
    job: JobRecord, approval: Approval, received: ReceivedSignal, now: float
) -> None:
    """Apply a person's decision on a call."""
    approval.approved = received.signal == "approve"
    approval.reason = received.payload.get("reason", "")
    approval.by = received.payload.get("by", "")
    _record_approval_decision(job, approval, now)
    named = approval.named_arguments
    verdict = "approved" if approval.approved else "denied"
    happened = f"{received.payload.get('by') or 'A person'} {verdict} {approval.tool}: {named}"
    # A denial is a correction, from which a guard may be made.
    trace_notes.note_trace(
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


def answered_approval_line(approval: Approval) -> str:
    """Return `ada@host approved move_file (1a2b3c4d) at 2026-11-25 11:20:03 UTC: old=a.md,
    new=b.md`.
    """
    when = datetime.fromtimestamp(approval.decided or 0, UTC)
    did, detail = approval_decision_words(approval)
    who = f"{approval.by or 'a person'} {did} ({approval.id})"
    if approval.expired:
        who = f"nobody approved {approval.tool} ({approval.id}) in time, it was denied"
    return f"{who} at {when:%Y-%m-%d %H:%M:%S} UTC{f': {detail}' if detail else ''}"


def approval_decision_words(approval: Approval) -> tuple[str, str]:
    """Return `approved move_file` and `old=a.md, new=b.md. Reason: fine`."""
    named = approval.named_arguments
    reason = "" if approval.expired else approval.reason
    did = f"{'approved' if approval.approved else 'denied'} {approval.tool}"
    if not reason:
        return did, named
    return did, f"{as_sentence(named)} Reason: {reason}" if named else f"Reason: {reason}"


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


def expire_approval(job: JobRecord, approval: Approval, now: float) -> str:
    """Deny a call that nobody approved in time; return a notice."""
    approval.approved, approval.expired = False, True
    hours = f"{job.limits.approve_hours:g} hours" if job.limits.approve_hours else "time"
    approval.reason = f"nobody approved it within {hours}"
    _record_approval_decision(job, approval, now)
    trace_notes.note_trace(
        job,
        "decision",
        "gate",
        "approval",
        f"{approval.tool} was denied, since {approval.reason}",
        tool=approval.tool,
        path=approval.arguments.get("path"),
    )
    return answered_approval_line(approval)

"""The status of a job: the answer to the query `status`, and the report to its project."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from protocol import scope_ledger
from protocol.job_record import JobRecord
from protocol.project import ChildReport
from protocol.todo_list import Todo
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows import approvals, budget, questions
from workflows.inbox import Inbox

MOST_ITEMS = 200


def job_status_answer(job: JobRecord, inbox: Inbox) -> dict[str, Any]:
    """Return the answer to the query, to which `starter.py show --json` adds some fields."""
    phase = job.state.phase
    approval = approvals.current_approval(job)
    return {
        "agent": job.agent,
        "model": job.model,
        "title": job.title,
        "root": job.root,
        "remote": {"url": job.remote, "behind": job.push_failure} if job.remote else None,
        "status": job.status,
        "waiting_for": job.waiting.reason if job.waiting else None,
        "waiting": job.wait.model_dump() if job.wait else None,
        "phase": {
            "number": phase.number,
            "kind": phase.kind,
            "name": phase.name,
            "purpose": phase.purpose,
        },
        "plan": {"position": phase.plan_position, "total": phase.plan_total},
        "todos": [
            {"id": todo.id, "content": todo.content, "status": todo_status_word(job, todo)}
            for todo in phase.todos
        ],
        "step": job.step,
        "waits_until": utc_time_text(job.timer.ends) if job.timer else None,
        "usage": job.usage.model_dump(),
        "limits": budget.limits_with_usage(job),
        "scope": scope_ledger.scope_counts(job.state.scope),
        "items": [
            {"id": item.id, "text": item.text[:200], "status": item.status}
            for item in job.state.scope
            if not item.is_step
        ][:MOST_ITEMS],
        "steps": [
            {"id": item.id, "text": item.text[:200], "status": item.status}
            for item in job.state.scope
            if item.is_step
        ][:MOST_ITEMS],
        "refused_completions": job.course.completion_refusals,
        "reviewing": job.review is not None,
        "clarification": job.clarification.model_dump(),
        "approval": approval.model_dump() if approval else None,
        "approvals": [each.model_dump() for each in job.approvals],
        "pausing": bool(job.pausing),
        "unread": [received.signal for received in inbox.signals],
        "people": [act.model_dump() for act in job.acts],
        "correction": job.next_correction,
        "remarks": [remark.line[:300] for remark in job.state.remarks[-20:]],
        # A signal may be refused during a long step.
        "refusals": job.refusals + inbox.refused,
        "nudges": job.nudges,
        "guards": {"refused": job.guard_refusals, "bypasses": job.bypasses},
        "rewinds": job.rewinds,
        "notices": [each.model_dump() for each in inbox.notices],
        "origin": job.origin.model_dump() if job.origin else None,
        "checkpoint": job.commit,
        "checkpoints": [{"phase": number, "id": id_} for number, id_ in job.phases.items()],
        "result": job.result.model_dump() if job.result else None,
    }


def preparing_job_status(inbox: Inbox, waiting: WaitState | None) -> dict[str, Any]:
    """Return the status of a job that has not begun: the keys that scripts rely on."""
    return {
        "agent": None,
        "model": None,
        "status": "waiting" if waiting else "running",
        "waiting_for": waiting.reason if waiting else None,
        "waiting": waiting.model_dump() if waiting else None,
        "phase": None,
        "plan": {"position": 0, "total": 0},
        "todos": [],
        "step": 0,
        "usage": Usage().model_dump(),
        "scope": scope_ledger.scope_counts([]),
        "refusals": inbox.refused,
        "rewinds": 0,
        "notices": [each.model_dump() for each in inbox.notices],
        "checkpoint": None,
        "checkpoints": [],
        "result": None,
    }


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


def todo_status_word(job: JobRecord, todo: Todo) -> str:
    """Return how a todo stands, as people are shown it."""
    if todo.done:
        return "completed"
    if not todo.needed:
        return "not needed"
    return "current" if todo is job.state.phase.current and not job.result else "open"

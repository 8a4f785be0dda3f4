"""Show a job: the `status` query, Temporal Web's current details, memo, search attributes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from protocol import scope_ledger
from protocol.job_record import JobRecord
from protocol.project import ChildReport
from protocol.search_attribute_names import AGENT, MODEL, PHASE, STATUS
from protocol.todo_list import Todo
from protocol.usage import Usage
from protocol.waiting import WaitState, WaitTimer
from workflows import budget, markdown, questions
from workflows.inbox import Inbox
from workflows.markdown import markdown_code_block

MOST_ITEMS = 200
MOST_STATE = 460
MOST_KNOWN = 64
MARKS = {"completed": "☑", "current": "▶", "open": "☐", "not needed": "·"}


def job_status_answer(job: JobRecord, inbox: Inbox) -> dict[str, Any]:
    """Return the answer to the query, to which `starter.py show --json` adds some fields."""
    phase = job.state.phase
    approval = questions.current_approval(job)
    return {
        "agent": job.agent,
        "model": job.model,
        "title": job.title,
        "root": job.root,
        "remote": {"url": job.remote, "behind": job.push_failure} if job.remote else None,
        "status": job.status,
        "waiting_for": job.waiting.reason if job.waiting else None,
        "waiting": job.waiting.model_dump() if job.waiting else None,
        "phase": {
            "number": phase.number,
            "kind": phase.kind,
            "name": phase.name,
            "purpose": phase.purpose,
        },
        "plan": {"position": phase.plan_position, "total": phase.plan_total},
        "todos": [
            {"id": todo.id, "content": todo.content, "status": _todo_status_word(job, todo)}
            for todo in phase.todos
        ],
        "step": job.step,
        "waits_until": _job_status_timer(job.timer) if job.timer else None,
        "usage": job.usage.model_dump(),
        "limits": budget.limits_with_usage(job),
        "scope": scope_ledger.scope_counts(job.state.scope),
        "items": [
            {"id": item.id, "text": item.text[:200], "status": item.status}
            for item in job.state.scope[:MOST_ITEMS]
        ],
        "refused_completions": job.course.completion_refusals,
        "reviewing": job.review is not None,
        "clarification": job.clarification.model_dump(),
        "approval": approval.model_dump() if approval else None,
        "approvals": [each.model_dump() for each in job.approvals],
        "pausing": bool(job.pausing),
        "people": [act.model_dump() for act in job.acts],
        "correction": job.next_correction,
        "remarks": [remark.line[:300] for remark in job.state.remarks[-20:]],
        # A signal may be refused during a long step.
        "refusals": job.refusals + inbox.refused,
        "nudges": job.nudges,
        "guards": {"refused": job.guard_refusals, "bypasses": job.bypasses},
        "rewinds": job.rewinds,
        "notices": inbox.notices,
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
        "notices": inbox.notices,
        "checkpoint": None,
        "checkpoints": [],
        "result": None,
    }


def preparing_job_status_memo(known: dict[str, str], word: str, state: str) -> dict[str, str]:
    """Return the memo of a start. Temporal accepts 2 KB, and a character may take four bytes."""
    fields = {key: value[:MOST_KNOWN] for key, value in known.items()}
    return {**fields, "status": word, "state": state[: MOST_STATE - MOST_KNOWN * len(fields)]}


def preparing_job_markdown(waiting: WaitState, notices: list[str]) -> str:
    """Return Temporal Web's current details of a start that waits."""
    return "\n".join(
        [
            *markdown.markdown_waiting_lines(waiting),
            *markdown.markdown_list_lines("Notices", notices),
        ]
    )


def job_status_markdown(job: JobRecord, notices: list[str]) -> str:
    """Return Temporal Web's current details in Markdown. Boxes are characters: `- [x]` would stay
    literal.
    """
    lines = [f"## {job.title}", "", f"**{job.status}** · agent {job.agent} · model {job.model}", ""]
    if job.waiting:
        lines += [*markdown.markdown_waiting_lines(job.waiting), ""]
        lines += [*markdown_code_block(job.waiting.about), ""] if job.waiting.about else []
    if job.timer:
        lines += [f"The agent waits until {_job_status_timer(job.timer)}.", ""]
    lines += _job_status_phase_lines(job)
    lines += [
        "",
        f"Steps {job.step} · {markdown.markdown_usage_line(job.usage)} · rewinds {job.rewinds} · "
        f"refusals {job.refusals} · nudges {job.nudges}",
    ]
    for remark in _status_remark_lines(job):
        lines += ["", remark]
    if result := job.result:
        lines += ["", "### Result", "", result.summary[:2000], ""]
        lines += [f"- `{path}`" for path in result.deliverables[:50]]
        lines += markdown.markdown_list_lines(
            "Unresolved", [text[:300] for text in result.unresolved[:50]]
        )
        lines += markdown.markdown_list_lines(
            "Dropped", [text[:300] for text in result.dropped[:50]]
        )
    lines += markdown.markdown_list_lines("Notices", notices)
    return "\n".join(lines)


def _job_status_phase_lines(job: JobRecord) -> list[str]:
    """Return the running phase with its list."""
    phase = job.state.phase
    place = f" · plan {phase.plan_position} of {phase.plan_total}" if phase.plan_total else ""
    done, total = phase.progress
    lines = [f"### Phase {phase.number} ({phase.kind}): {phase.name}", ""]
    lines += [f"Progress {done} of {total}{place}", ""]
    # A table, since the UI gives list items bullets of its own and no hanging indent. Its cells
    # have no padding, hence the non-breaking spaces.
    lines += ["| | | |", "|---|---|---|"]
    for todo in phase.todos:
        word, text = _todo_status_word(job, todo), markdown.markdown_table_cell(todo.content)
        shown = f"**{text}**" if word == "current" else text
        shown += " (not needed)" if word == "not needed" else ""
        lines.append(
            f"| {MARKS[word]}\N{NO-BREAK SPACE} | {todo.id}.\N{NO-BREAK SPACE} | {shown} |"
        )
    return lines


def _status_remark_lines(job: JobRecord) -> Iterator[str]:
    """Return further lines about the status."""
    if items := job.state.scope:
        yield f"Scope: {scope_ledger.scope_ledger_line(items)}"
    if job.push_failure:
        yield f"The remote {job.remote} lacks checkpoints: {job.push_failure}"
    if job.review:
        yield f"The completion is under review, call {job.review.calls + 1}."
    if helpers := budget.helpers_needing_budget(job):
        yield f"Helpers at work: {len(helpers)}."
    if job.guard_refusals:
        counts = ", ".join(f"{guard} {count}" for guard, count in job.guard_refusals.items())
        yield f"Refused by guards: {counts}"
    if job.bypasses:
        yield f"Bypassed once: {', '.join(job.bypasses)}"


def job_status_report(job: JobRecord, job_id: str) -> ChildReport:
    """Return the report to the project that the job works for."""
    waits, phase = job.waiting, job.state.phase
    # In the first phase there is nothing to continue from.
    phase_start = job.phases.get(phase.number) if phase.number > 1 else None
    return ChildReport(
        job=job_id,
        status=job.status,
        waiting=waits.reason if waits else None,
        asks=questions.pending_question_reason(job),
        message=waits.message[:2000] if waits else "",
        remedy=waits.remedy[:2000] if waits else "",
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
    )


def job_status_memo(job: JobRecord) -> dict[str, str]:
    """Return the last state in short, for when no worker can be asked."""
    phase = job.state.phase
    done, total = phase.progress
    state = f"phase {phase.number} ({phase.kind}) {phase.name}, {done}/{total} todos"
    return {
        "title": job.title,
        "agent": job.agent,
        "status": job.status if not job.waiting else f"waiting: {job.waiting.reason}",
        "phase": f"{phase.number} {phase.kind}",
        "state": state,
    }


def job_status_attributes(job: JobRecord, memo: dict[str, str]) -> dict[str, str]:
    """Return the values of the search attributes that the server has registered."""
    values = {
        AGENT: memo["agent"],
        STATUS: memo["status"],
        PHASE: memo["phase"],
        MODEL: job.model[:100],
    }
    return {name: value for name, value in values.items() if name in job.search_attributes}


def _job_status_timer(timer: WaitTimer) -> str:
    return datetime.fromtimestamp(timer.ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _todo_status_word(job: JobRecord, todo: Todo) -> str:
    if todo.done:
        return "completed"
    if not todo.needed:
        return "not needed"
    return "current" if todo is job.state.phase.current and not job.result else "open"

"""How a job shows: the `status` query, Temporal Web's current details, memo, search attributes."""

from __future__ import annotations

from typing import Any

from protocol.record import JobRecord
from protocol.search_attributes import AGENT, MODEL, PHASE, STATUS
from protocol.state import Todo
from workflows import budget


def status(job: JobRecord, notices: list[str]) -> dict[str, Any]:
    """What `starter.py show --json` prints."""
    phase, scope = job.state.phase, job.state.scope
    return {
        "agent": job.agent,
        "model": job.model,
        "title": job.title,
        "root": job.root,
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
            {"id": todo.id, "content": todo.content, "status": _todo_status(job, todo)}
            for todo in phase.todos
        ],
        "step": job.step,
        "usage": job.usage.model_dump(),
        "limits": budget.standing(job),
        "scope": {
            "original": sum(item.original for item in scope),
            "completed": sum(item.status == "completed" for item in scope),
            "added": sum(not item.original for item in scope),
            "dropped": sum(item.status == "dropped" for item in scope),
            "open": sum(item.status == "open" for item in scope),
        },
        "refusals": job.refusals,
        "guards": {"refused": job.refused, "bypasses": job.bypasses},
        "rewinds": job.rewinds,
        "notices": notices,
        "checkpoint": job.commit,
        "checkpoints": [{"phase": number, "id": id_} for number, id_ in job.phases.items()],
        "result": job.result.model_dump() if job.result else None,
    }


def preparing(notices: list[str]) -> dict[str, Any]:
    """The same before there is a job to speak of."""
    return {"status": "running", "waiting_for": None, "phase": None, "todos": [], "step": 0} | {
        "notices": notices
    }


def details(job: JobRecord, notices: list[str]) -> str:
    """Temporal Web's current details, in Markdown. Boxes are characters: `- [x]` stays literal."""
    phase = job.state.phase
    place = f" · plan {phase.plan_position} of {phase.plan_total}" if phase.plan_total else ""
    lines = [f"## {job.title}", "", f"**{job.status}** · agent {job.agent} · model {job.model}", ""]
    if job.waiting:
        lines += [f"**Waiting: {job.waiting.reason}.** {job.waiting.message}", ""]
        lines += [f"What to do: {job.waiting.remedy}", ""]
    done = len(phase.todos) - phase.open_count
    lines += [f"### Phase {phase.number} ({phase.kind}): {phase.name}", ""]
    lines += [f"Progress {done} of {len(phase.todos)}{place}", ""]
    marks = {"completed": "☑", "current": "▶", "open": "☐"}
    # A table, since the UI gives list items bullets of its own and no hanging indent; cells have
    # no padding there, hence the non-breaking spaces.
    lines += ["| | | |", "|---|---|---|"]
    for todo in phase.todos:
        word = _todo_status(job, todo)
        text = " ".join(todo.content.split()).replace("|", "\\|")
        shown = f"**{text}**" if word == "current" else text
        lines.append(
            f"| {marks[word]}\N{NO-BREAK SPACE} | {todo.id}.\N{NO-BREAK SPACE} | {shown} |"
        )
    usage = job.usage
    cost = f" · cost {usage.cost:.4f}" if usage.cost else ""
    lines += [
        "",
        f"Steps {job.step} · tool calls {usage.tool_calls} · tokens "
        f"{usage.prompt_tokens + usage.completion_tokens:,}{cost} · rewinds {job.rewinds} · "
        f"refusals {job.refusals}",
    ]
    if job.refused:
        counts = ", ".join(f"{guard} {count}" for guard, count in job.refused.items())
        lines += ["", f"Refused by guards: {counts}"]
    if job.bypasses:
        lines += ["", f"Bypassed once: {', '.join(job.bypasses)}"]
    if job.result:
        lines += ["", "### Result", "", job.result.summary[:2000], ""]
        lines += [f"- `{path}`" for path in job.result.deliverables[:50]]
    if notices:
        lines += ["", "### Notices", "", *(f"- {notice}" for notice in notices)]
    return "\n".join(lines)


def memo(job: JobRecord) -> dict[str, str]:
    """The last state in a line, for when no worker can be asked."""
    phase = job.state.phase
    done = len(phase.todos) - phase.open_count
    state = f"phase {phase.number} ({phase.kind}) {phase.name}, {done}/{len(phase.todos)} todos"
    return {
        "title": job.title,
        "agent": job.agent,
        "status": job.status if not job.waiting else f"waiting: {job.waiting.reason}",
        "phase": f"{phase.number} {phase.kind}",
        "state": state,
    }


def attributes(job: JobRecord) -> dict[str, str]:
    """Search attributes, those that the server has registered."""
    phase = job.state.phase
    values = {
        AGENT: job.agent,
        STATUS: job.status if not job.waiting else f"waiting: {job.waiting.reason}",
        PHASE: f"{phase.number} {phase.kind}",
        MODEL: job.model[:100],
    }
    return {name: value for name, value in values.items() if name in job.search_attributes}


def _todo_status(job: JobRecord, todo: Todo) -> str:
    if todo.done:
        return "completed"
    return "current" if todo is job.state.phase.current and not job.result else "open"

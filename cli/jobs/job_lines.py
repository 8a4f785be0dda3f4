"""Renders a job for the terminal: pure functions from its status to text."""

from __future__ import annotations

import json
from typing import Any

from cli.output import escape_controls
from cli.projects import project_rendering
from cli.trials import trial_rendering
from engine.program_names import name_running_program
from protocol.contract import ContractRow, contract_line
from protocol.short_text import count_noun
from protocol.usage import Usage

MOST_RESULT = 1000
"""Characters of a typed result that are shown."""


BOXES = {"completed": "☑", "current": "▶", "open": "☐", "not needed": "·"}
Status = dict[str, Any]


def job_todo_lines(status: Status) -> list[tuple[str, str]]:
    """Return box and text of each todo."""
    if status.get("project"):
        return project_rendering.project_unit_lines(status)
    if status.get("trial"):
        return trial_rendering.trial_configuration_lines(status)
    return [
        (
            BOXES[todo["status"]],
            f"{todo['id']}. {todo['content']}"
            + (" (not needed)" if todo["status"] == "not needed" else ""),
        )
        for todo in status.get("todos") or []
    ]


def job_todo_progress(status: Status) -> tuple[int, int]:
    """Return the number of completed todos, and of all that are needed."""
    if status.get("trial"):
        return trial_rendering.trial_progress(status)
    boxes = [box for box, _ in job_todo_lines(status) if box != BOXES["not needed"]]
    return boxes.count(BOXES["completed"]), len(boxes)


def job_phase_line(status: Status) -> str:
    """Render `phase 2 · tactical · Extraction · plan 1 of 3`; for a project, its progress."""
    if status.get("project"):
        return str(status.get("line") or "")
    if status.get("trial"):
        return trial_rendering.trial_line(status)
    running_phase = status.get("phase") or {}
    number = running_phase.get("number")
    parts = [
        f"phase {number}" if number else "",
        running_phase.get("kind"),
        running_phase.get("name"),
    ]
    plan = status.get("plan") or {}
    if plan.get("total"):
        parts.append(f"plan {plan.get('position')} of {plan['total']}")
    return " · ".join(str(part) for part in parts if part)


def job_usage_line(status: Status) -> str:
    """Render `12 model calls · 30 tool calls · 45,678 tokens · cost 0.0123`.

    Tokens read from and written to the endpoint's cache follow the total; a cost of 0 is omitted.
    Empty if the usage is unknown, as in a memo.
    """
    counts = status.get("usage")
    if not counts:
        return ""
    tokens = int(counts.get("prompt_tokens") or 0) + int(counts.get("completion_tokens") or 0)
    unfinished = Usage(unfinished_tokens=int(counts.get("unfinished_tokens") or 0))
    read, written = (int(counts.get(f"{name}_tokens") or 0) for name in ("cached", "written"))
    cost = float(counts.get("cost") or 0)
    details = _job_call_details(counts)
    model_calls, tool_calls = (
        count_noun(counts.get(f"{kind}_calls") or 0, f"{kind} call") for kind in ("model", "tool")
    )
    return (
        f"{model_calls} · {tool_calls}"
        + (f" ({details})" if details else "")
        + f" · {tokens:,} tokens"
        + (f" (cache: {read:,} read, {written:,} written)" if read or written else "")
        + (f" ({unfinished.unfinished_details})" if unfinished.unfinished_details else "")
        + (f" · cost {cost:.4f}" if cost else "")
    )


def _job_call_details(details: dict[str, Any]) -> str:
    """Render `34 sent, 4 refused, 2 failed`; empty if the job did not count them separately."""
    names = ("sent_calls", "tool_calls", "refused_calls", "failed_calls")
    counts = {name: int(details.get(name) or 0) for name in names}
    return Usage(**counts).call_details if counts["sent_calls"] else ""


def job_limits_line(status: Status) -> str:
    """Render `limits: job cost 1.2 of 2 · phase model calls 12 of 500`; empty without limits."""
    parts = [
        f"{scope} {key.replace('_', ' ')} {float(amount['spent']):,.10g} of {amount['limit']:,.10g}"
        for scope, amounts in (status.get("limits") or {}).items()
        for key, amount in amounts.items()
    ]
    return f"limits: {' · '.join(parts)}" if parts else ""


def job_waiting_line(waiting: dict[str, str] | None) -> str:
    """Render `waiting (credentials): The key was refused. Set OPENAI_API_KEY and resume.`"""
    if not waiting:
        return ""
    message, remedy = (waiting.get(name, "").strip() for name in ("message", "remedy"))
    several = "\n" in message
    if message and remedy and not several and not message.endswith((".", "!", "?")):
        # Messages of endpoints often lack a full stop.
        message += "."
    # The end of a command's output must not run on into the advice.
    between = "\n" if several else " "
    text = name_running_program(f"{message}{between}{remedy}".strip())
    return f"waiting ({waiting.get('reason', 'unknown')})" + (f": {text}" if text else "")


def job_timer_line(status: Status) -> str:
    """Render `the agent waits until 2026-03-01T09:00:00Z`; empty if it does not wait."""
    until = status.get("waits_until")
    return f"the agent waits until {until}" if until else ""


def job_status_line(status: Status, waiting: dict[str, str] | None) -> str:
    """Render the job on one line, which is printed when it differs from the previous one."""
    done, total = job_todo_progress(status)
    current = next((text for box, text in job_todo_lines(status) if box == BOXES["current"]), "")
    parts = [
        str(status.get("status", "running")) if not waiting else job_waiting_line(waiting),
        job_phase_line(status),
        f"{done}/{total}" if total and not status.get("trial") else "",
        "" if status.get("trial") else current,
    ]
    return escape_controls(" · ".join(part for part in parts if part))


def contract_rows(result: dict[str, Any]) -> list[ContractRow]:
    """Return the rows of a result's contract; none for the result of a project or a trial."""
    fields = set(ContractRow.model_fields)
    return [
        ContractRow.model_validate({key: row[key] for key in fields & row.keys()})
        for row in result.get("contract") or []
    ]


def job_ending_line(status: Status) -> str:
    """Render `completed, 11 of 12 statements met`."""
    result = status.get("result") or {}
    statements, count = (int(result.get(name) or 0) for name in ("statements", "met"))
    met = contract_line(statements, count, contract_rows(result))
    return ", ".join(part for part in (str(status.get("status")), met) if part)


def job_title_line(status: Status) -> str:
    title = " ".join(str(status.get("title") or "").split())
    return " · ".join(part for part in (str(status.get("job_id", "")), title[:80]) if part)


def job_origin_line(origin: dict[str, Any]) -> str:
    """Render the repository or folder that the work began from, and the pinned commit."""
    ref = f" at {origin['ref']}" if origin.get("ref") else ""
    return f"begun from {origin['source']}{ref}, commit {origin['commit'][:12]}"


def job_result_line(typed: dict[str, Any]) -> str:
    """Render `result output/result.json: {"grams": 3}`, or its size if it is long."""
    content = json.dumps(typed.get("content"), ensure_ascii=False)
    if typed.get("content") is None or len(content) > MOST_RESULT:
        content = f"{typed['bytes']:,} bytes"
    return f"result {typed['path']}: {content}"


def job_branch_lines(branch: dict[str, Any]) -> list[str]:
    """Render the branch with the work on a repository in lines."""
    if not branch:
        return []
    if not branch.get("commit"):
        return ["nothing in the repository was changed"]
    lines = [f"branch {branch['branch']} at {branch['commit'][:12]}"]
    if branch.get("published"):
        lines[0] += f", pushed to {branch['published']}"
    return lines + [f"  {path}" for path in branch.get("files") or []]

"""Renders a job for the terminal: pure functions from its status to text."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli import project_rendering, trial_rendering
from cli.output import escape_controls, name_running_program
from protocol.usage import Usage

BOXES = {"completed": "☑", "current": "▶", "open": "☐", "not needed": "·"}
_COLOURS = {
    "running": "green",
    "waiting": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
    "terminated": "red",
}
PAUSING = "the job pauses once the calls of its last reply are carried out"
MOST_RESULT = 1000
"""Characters of a typed result that are shown."""
Status = dict[str, Any]
_REFUSAL = re.compile(r"step (\d+): (?:guard .* refused |job_complete was refused)")


def render_job_todos(status: Status) -> list[tuple[str, str]]:
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
        return trial_rendering.run_progress(status)
    boxes = [box for box, _ in render_job_todos(status) if box != BOXES["not needed"]]
    return boxes.count(BOXES["completed"]), len(boxes)


def phase_line(status: Status) -> str:
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


def usage_line(status: Status) -> str:
    """Render `12 model calls · 30 tool calls · 45,678 tokens · cost 0.0123`.

    Tokens read from and written to the endpoint's cache follow the total; a cost of 0 is omitted.
    Empty if the usage is unknown, as in a memo.
    """
    counts = status.get("usage")
    if not counts:
        return ""
    tokens = int(counts.get("prompt_tokens") or 0) + int(counts.get("completion_tokens") or 0)
    read, written = (int(counts.get(f"{name}_tokens") or 0) for name in ("cached", "written"))
    cost = float(counts.get("cost") or 0)
    details = _render_call_details(counts)
    return (
        f"{counts.get('model_calls') or 0} model calls · {counts.get('tool_calls') or 0} tool calls"
        + (f" ({details})" if details else "")
        + f" · {tokens:,} tokens"
        + (f" (cache: {read:,} read, {written:,} written)" if read or written else "")
        + (f" · cost {cost:.4f}" if cost else "")
    )


def _render_call_details(details: dict[str, Any]) -> str:
    """Render `34 sent, 4 refused, 2 failed`; empty if the job did not count them separately."""
    names = ("sent_calls", "tool_calls", "refused_calls", "failed_calls")
    counts = {name: int(details.get(name) or 0) for name in names}
    return Usage(**counts).call_details if counts["sent_calls"] else ""


def limits_line(status: Status) -> str:
    """Render `limits: job cost 1.2 of 2 · phase model calls 12 of 500`; empty without limits."""
    parts = [
        f"{scope} {key.replace('_', ' ')} {float(amount['spent']):,.10g} of {amount['limit']:,.10g}"
        for scope, amounts in (status.get("limits") or {}).items()
        for key, amount in amounts.items()
    ]
    return f"limits: {' · '.join(parts)}" if parts else ""


def waiting_line(waiting: dict[str, str] | None) -> str:
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


def agent_timer_line(status: Status) -> str:
    """Render `the agent waits until 2026-03-01T09:00:00Z`; empty if it does not wait."""
    until = status.get("waits_until")
    return f"the agent waits until {until}" if until else ""


def job_question_fields(status: Status) -> dict[str, str]:
    """Return the agent's question to a person, as the agent wrote it."""
    return (status.get("waiting") or {}).get("about") or {}


def status_line(status: Status, waiting: dict[str, str] | None) -> str:
    """Render the job on one line, which is printed when it differs from the previous one."""
    done, total = job_todo_progress(status)
    current = next((text for box, text in render_job_todos(status) if box == BOXES["current"]), "")
    parts = [
        str(status.get("status", "running")) if not waiting else waiting_line(waiting),
        phase_line(status),
        f"{done}/{total}" if total and not status.get("trial") else "",
        "" if status.get("trial") else current,
    ]
    return escape_controls(" · ".join(part for part in parts if part))


def elapsed_text(started: datetime, now: datetime) -> str:
    """Format a duration as `1:02:03`."""
    return str(timedelta(seconds=max(0, int((now - started).total_seconds()))))


def live_view(
    status: Status,
    waiting: dict[str, str] | None,
    *,
    running_for: str,
    events: list[tuple[datetime, str]],
    pending: list[str],
    silence: str,
) -> RenderableType:
    """Render the live view. The job's texts are never interpreted as markup."""
    word = str(status.get("status", "running"))
    head = Text.assemble(
        (word, f"bold {_COLOURS.get(word, 'white')}"),
        f"  {status.get('agent') or ''}  {status.get('model') or ''}  {running_for}",
    )
    parts: list[RenderableType] = [head, _job_sheet_paragraph(phase_line(status), "bold")]
    # Before the todos: if the terminal has too few lines, the rest is cut.
    if waiting:
        parts.append(_job_sheet_paragraph(waiting_line(waiting), "yellow"))
    if agent_timer_line(status):
        parts.append(_job_sheet_paragraph(agent_timer_line(status), "dim"))
    if silence:
        parts.append(_job_sheet_paragraph(f"{silence}: this is the last state on record", "yellow"))
    done, total = job_todo_progress(status)
    if total:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=total, completed=done, width=40), f"{done}/{total}")
        parts.append(bar)
    for box, text in render_job_todos(status):
        style = {BOXES["current"]: "bold", BOXES["completed"]: "dim"}.get(box, "")
        parts.append(_job_sheet_row(f"{box} {text}", style))
    parts += [
        _job_sheet_paragraph(text, "dim")
        for text in (usage_line(status), limits_line(status))
        if text
    ]
    parts += [_job_sheet_row(f"retrying {text}", "yellow") for text in pending]
    parts += [
        _job_sheet_row(f"{time.astimezone():%H:%M:%S} {text}", "dim") for time, text in events
    ]
    return Panel(
        Group(*parts), title=Text(escape_controls(_job_title_line(status))), title_align="left"
    )


def _job_sheet_paragraph(text: str, style: str) -> Text:
    """Wrap a text over several lines; the console itself does not wrap."""
    return Text(escape_controls(text), style, no_wrap=False, overflow="fold")


def _job_sheet_row(text: str, style: str) -> Text:
    return Text(escape_controls(f"  {text}"), style, no_wrap=True, overflow="ellipsis")


def _job_title_line(status: Status) -> str:
    title = " ".join(str(status.get("title") or "").split())
    return " · ".join(part for part in (str(status.get("job_id", "")), title[:80]) if part)


def job_outcome_lines(status: Status) -> list[str]:
    """Render the result of a closed job in lines."""
    result = status.get("result") or {}
    lines = [f"{status.get('job_id')} {status.get('status')}"]
    if status.get("trial") and (runs := trial_rendering.read_trial_runs(status)):
        reached = trial_rendering.trial_ending_line(status)
        return [*lines, *([reached] if reached else []), *trial_rendering.trial_table_lines(runs)]
    if status.get("error") not in (None, status.get("status")):
        lines[0] += f": {status['error']}"
    if result.get("summary"):
        lines.append(str(result["summary"]))
    if result.get("result"):
        lines.append(typed_result_line(result["result"]))
    if result.get("confidence") is not None:
        lines.append(f"confidence {result['confidence']}")
    for name in ("deliverables", "unresolved", "dropped"):
        if result.get(name):
            lines += [f"{name}:", *(f"  {item}" for item in result[name])]
    if result.get("notes"):
        lines.append(str(result["notes"]))
    lines += job_branch_lines(result.get("branch") or {})
    spent = usage_line({"usage": result.get("usage") or status.get("usage")})
    if not spent:
        return lines
    if status.get("project"):
        count = result.get("jobs") or len(status.get("jobs") or [])
        return [*lines, f"{count} job{'' if count == 1 else 's'} · {spent}"]
    phases = result.get("phases") or (status.get("phase") or {}).get("number") or 0
    rewinds = result.get("rewinds") or status.get("rewinds") or 0
    lines.append(f"{phases} phases · {rewinds} rewinds · {spent}")
    return lines


def typed_result_line(typed: dict[str, Any]) -> str:
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


def job_origin_line(origin: dict[str, Any]) -> str:
    """Render the repository or folder that the work began from, and the pinned commit."""
    ref = f" at {origin['ref']}" if origin.get("ref") else ""
    return f"begun from {origin['source']}{ref}, commit {origin['commit'][:12]}"


def render_job_sheet(status: Status, waiting: dict[str, str] | None) -> list[str]:
    """Render a running job in lines."""
    details = str(status.get("details") or "")
    lines = [
        _job_title_line(status),
        " · ".join(str(status[key]) for key in ("status", "agent", "model") if status.get(key)),
        # A memo's `details` already contain the phase and its name.
        "" if details.startswith("phase ") else phase_line(status),
        *(
            project_rendering.render_project_units(status)
            if status.get("project")
            else trial_rendering.render_trial_sheet(status)
            if status.get("trial")
            else [f"  {box} {text}" for box, text in render_job_todos(status)]
        ),
        waiting_line(waiting),
        PAUSING if status.get("pausing") else "",
        agent_timer_line(status),
        *(f"  {name}: {value}" for name, value in job_question_fields(status).items()),
        *project_rendering.project_job_lines(status),
        *project_rendering.render_project_waits(status),
        usage_line(status),
        limits_line(status),
    ]
    scope = status.get("scope") or {}
    if scope.get("original") or scope.get("added"):
        lines.append("scope: " + ", ".join(f"{count} {word}" for word, count in scope.items()))
    guards = status.get("guards") or {}
    if guards.get("refused"):
        counts = ", ".join(f"{guard} {count}" for guard, count in guards["refused"].items())
        lines.append(f"refused by guards: {counts}")
    if guards.get("bypasses"):
        lines.append(f"bypassed once: {', '.join(guards['bypasses'])}")
    if status.get("origin"):
        lines.append(job_origin_line(status["origin"]))
    if status.get("repository"):
        lines.append(f"git clone {status['repository']}")
    if status.get("checkpoint"):
        lines.append(f"checkpoint {status['checkpoint']}")
    if (status.get("remote") or {}).get("behind"):
        lines.append("the remote {url} lacks checkpoints: {behind}".format(**status["remote"]))
    lines += [
        f"notice: {text}"
        for text in status.get("notices") or []
        if not _is_notice_resolved(text, status)
    ]
    return [text for text in [*lines, details] if text]


def _is_notice_resolved(notice: str, status: Status) -> bool:
    """Return whether a notice reports a refusal since which the agent has continued."""
    refusal = _REFUSAL.match(notice)
    goes_on = int(status.get("step") or 0) > int(refusal[1]) if refusal else False
    return goes_on and not status.get("waiting_for")


def render_text_table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[str]:
    """Render a table; columns are as wide as their content, and nothing is cut or wrapped."""
    cells = [[" ".join(str(row[name] or "-").split()) for name in names] for row in rows]
    table = [[name.upper() for name in names], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]

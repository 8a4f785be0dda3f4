"""The sheet of a running job, as `show` prints it."""

from __future__ import annotations

from pathlib import Path

from cli.jobs.current_notices import render_current_notices
from cli.jobs.job_lines import (
    Status,
    job_ending_line,
    job_limits_line,
    job_origin_line,
    job_phase_line,
    job_timer_line,
    job_title_line,
    job_todo_lines,
    job_usage_line,
    job_waiting_line,
)
from cli.projects import project_rendering
from cli.trials import trial_rendering

PAUSING = "the job pauses once the calls of its last reply are carried out"
UNREAD = "received, and read after the step in flight"


def _sheet_question_fields(status: Status) -> dict[str, str]:
    """Return the agent's question to a person, as the agent wrote it.

    What the reason of the wait says already is left out.
    """
    waiting = status.get("waiting") or {}
    fields: dict[str, str] = waiting.get("about") or {}
    message = waiting.get("message") or ""
    return {
        name: value for name, value in fields.items() if name != "question" or value not in message
    }


def render_job_sheet(status: Status, waiting: dict[str, str] | None) -> list[str]:
    """Render a running job in lines."""
    details = str(status.get("details") or "")
    ends = status.get("result") and not status.get("trial")
    met = ends and not status.get("project") and status["result"].get("statements")
    lines = [
        job_title_line(status) + (f" · {job_ending_line(status)}" if met else ""),
        " · ".join(str(status[key]) for key in ("status", "agent", "model") if status.get(key)),
        # A memo's `details` already contain the phase and its name.
        "" if details else job_phase_line(status),
        *(
            project_rendering.render_project_units(status)
            if status.get("project")
            else trial_rendering.render_trial_sheet(status)
            if status.get("trial")
            else [f"  {box} {text}" for box, text in job_todo_lines(status)]
        ),
        job_waiting_line(waiting),
        PAUSING if status.get("pausing") else "",
        f"{UNREAD}: {', '.join(status['unread'])}" if status.get("unread") else "",
        job_timer_line(status),
        *(f"  {name}: {value}" for name, value in _sheet_question_fields(status).items()),
        *project_rendering.project_job_lines(status),
        *project_rendering.render_project_waits(status),
        # How a job ended follows, with what it used; its limits no longer matter.
        *([] if ends else [job_usage_line(status), job_limits_line(status)]),
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
        # With a remote each host has a copy, and only the first one's path is known.
        path = status["repository"]
        copies = f"each host that worked on it has .longhaul/projects/{Path(path).name} in its root"
        host = f" (on the host where it began; {copies})" if status.get("remote") else ""
        lines.append(f"git clone {path}{host}")
    if status.get("checkpoint"):
        lines.append(f"checkpoint {status['checkpoint']}")
    lines.append(_remote_line(status))
    lines += render_current_notices(status)
    return [text for text in [*lines, details] if text]


def _remote_line(status: Status) -> str:
    """Return what the remote lacks; empty if it lacks nothing."""
    remote = status.get("remote") or {}
    if not remote.get("behind"):
        return ""
    if status.get("result"):
        # A closed job cannot learn of the push that its worker makes once the remote is back.
        return (
            f"when the job ended, the remote {remote['url']} lacked checkpoints, which a "
            f"worker of that host pushes later: {remote['behind']}"
        )
    return f"the remote {remote['url']} lacks checkpoints: {remote['behind']}"

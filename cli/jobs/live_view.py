"""The live view of a job, which `watch` repaints on a terminal."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.jobs.job_lines import (
    BOXES,
    Status,
    job_limits_line,
    job_phase_line,
    job_timer_line,
    job_title_line,
    job_todo_lines,
    job_todo_progress,
    job_usage_line,
    job_waiting_line,
)
from cli.output import escape_controls

_COLOURS = {
    "running": "green",
    "waiting": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
    "terminated": "red",
}


def render_live_view(
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
    parts: list[RenderableType] = [head, _live_view_paragraph(job_phase_line(status), "bold")]
    # Before the todos: if the terminal has too few lines, the rest is cut.
    if waiting:
        parts.append(_live_view_paragraph(job_waiting_line(waiting), "yellow"))
    if job_timer_line(status):
        parts.append(_live_view_paragraph(job_timer_line(status), "dim"))
    if silence:
        parts.append(_live_view_paragraph(f"{silence}: this is the last state on record", "yellow"))
    done, total = job_todo_progress(status)
    if total:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=total, completed=done, width=40), f"{done}/{total}")
        parts.append(bar)
    for box, text in job_todo_lines(status):
        style = {BOXES["current"]: "bold", BOXES["completed"]: "dim"}.get(box, "")
        parts.append(_live_view_row(f"{box} {text}", style))
    parts += [
        _live_view_paragraph(text, "dim")
        for text in (job_usage_line(status), job_limits_line(status))
        if text
    ]
    parts += [_live_view_row(f"retrying {text}", "yellow") for text in pending]
    parts += [
        _live_view_row(f"{time.astimezone():%H:%M:%S} {text}", "dim") for time, text in events
    ]
    return Panel(
        Group(*parts), title=Text(escape_controls(job_title_line(status))), title_align="left"
    )


def _live_view_paragraph(text: str, style: str) -> Text:
    """Wrap a text over several lines; the console itself does not wrap."""
    return Text(escape_controls(text), style, no_wrap=False, overflow="fold")


def _live_view_row(text: str, style: str) -> Text:
    return Text(escape_controls(f"  {text}"), style, no_wrap=True, overflow="ellipsis")

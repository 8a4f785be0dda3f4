"""Prints an outline in a terminal: as lines, and as the view that `watch` repaints."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.jobs.job_view import JobView
from cli.output import FAILED, OK, escape_controls, print_json, print_result
from cli.trials.trial_outline import trial_outline
from engine.program_names import name_running_program
from protocol.current_notices import current_notice_lines
from protocol.job_outline import job_outline
from protocol.outline import CURRENT, MARKS, Outline, Section
from protocol.project_outline import project_outline
from protocol.status import AnyStatus, ProjectStatus, TrialStatus

OUTCOME = ("result", "deliverables", "scope", "figures")
"""Sections on how something ended."""
_COLOURS = {
    "running": "green",
    "waiting": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
    "terminated": "red",
}
_STYLES = {CURRENT: "bold", MARKS["completed"]: "dim"}


def status_outline(status: AnyStatus) -> Outline:
    """Return the outline of a job, a project or a trial, with the notices that still matter."""
    return outline_with(status, list(map(name_running_program, current_notice_lines(status))))


def outline_with(
    status: AnyStatus, notices: Sequence[object], links: Mapping[str, str] | None = None
) -> Outline:
    """Return an outline with these notices; of a trial, with the pages of its runs."""
    if isinstance(status, ProjectStatus):
        return project_outline(status, notices)
    if isinstance(status, TrialStatus):
        return trial_outline(status, notices, links)
    return job_outline(status, notices)


def outline_lines(outline: Outline, names: Collection[str] = ()) -> list[str]:
    """Return the lines of an outline's sections, of those with these names if there are any."""
    return [
        line
        for section in outline.sections
        if not names or section.name in names
        for line in _section_lines(section)
    ]


def outline_sheet(outline: Outline) -> list[str]:
    """Return what `show` prints."""
    state = " · ".join([outline.ending, *outline.facts])
    return [line for line in [outline.head, state, *outline_lines(outline)] if line]


def job_outcome_lines(status: AnyStatus) -> list[str]:
    """Return how a closed job ended, in lines."""
    outline = status_outline(status)
    ending = f"{status.job_id} {outline.ending}" + (f": {status.error}" if status.error else "")
    needed = ("needs",) if isinstance(status, ProjectStatus) else ()
    return [ending, *outline_lines(outline, (*needed, *OUTCOME))]


def job_status_line(status: AnyStatus) -> str:
    """Return everything on one line, which is printed when it differs from the previous one."""
    return escape_controls(name_running_program(status_outline(status).line))


def print_job_outcome(job: JobView, *, json: bool) -> int:
    if json:
        print_json(job.status.model_dump(mode="json"))
    else:
        for line in job_outcome_lines(job.status):
            print_result(line)
    return job_exit_code(job)


def job_exit_code(job: JobView) -> int:
    """Return 0 if all is done: a project with a blocked unit has not done all."""
    status = job.status
    is_done = status.status == "completed" and not (
        isinstance(status, ProjectStatus)
        and any(unit.status != "completed" for unit in status.units)
    )
    return OK if is_done else FAILED


def _section_lines(section: Section) -> list[str]:
    rows = [row for row in section.rows if not row.is_detail]
    heading = section.heading if section.name == "list" else section.heading.lower()
    if heading and section.lead:
        heading += f" · {section.lead}" if section.name == "list" else f": {section.lead}"
    elif heading and section.name != "list":
        heading = f"{heading}:" if rows else ""
    lines = [heading or section.lead] if heading or section.lead else []
    for row in rows:
        indent = "  " if section.heading or row.is_quoted or row.mark else ""
        text = name_running_program(row.text) if section.name == "needs" else row.text
        lines.append(f"{indent}{row.mark} {text}" if row.mark else f"{indent}{text}")
        lines += [f"{indent}{'    ' if row.mark else '  '}{line}" for line in row.below]
    return lines


def render_live_view(
    outline: Outline, *, running_for: str, events: list[tuple[datetime, str]], silence: str
) -> RenderableType:
    """Render the view that `watch` repaints. The job's texts are never read as markup."""
    head = Text.assemble(
        (outline.word, f"bold {_COLOURS.get(outline.word, 'white')}"),
        f"  {'  '.join(outline.facts)}  {running_for}",
    )
    parts: list[RenderableType] = [head, _paragraph(outline.place, "bold")]
    # Before the list: if the terminal has too few lines, the rest is cut.
    parts += [_paragraph(line, "yellow") for line in outline_lines(outline, ["needs"])]
    if silence:
        parts.append(_paragraph(f"{silence}: this is the last state on record", "yellow"))
    done, total = outline.progress
    if total:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=total, completed=done, width=40), f"{done}/{total}")
        parts.append(bar)
    parts += [_row(f"{row.mark} {row.text}", _STYLES.get(row.mark, "")) for row in outline.steps]
    parts += [_paragraph(line, "dim") for line in outline_lines(outline, ["figures"])]
    parts += [_row(f"{time.astimezone():%H:%M:%S} {text}", "dim") for time, text in events]
    title = Text(escape_controls(outline.head))
    return Panel(Group(*parts), title=title, title_align="left")


def _paragraph(text: str, style: str) -> Text:
    """Wrap a text over several lines; the console itself does not wrap."""
    return Text(escape_controls(text), style, no_wrap=False, overflow="fold")


def _row(text: str, style: str) -> Text:
    return Text(escape_controls(f"  {text}"), style, no_wrap=True, overflow="ellipsis")

"""The sections of a job's page that its history, its checkpoints and the store contain."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from cli.report.report_content import Habit, Pattern, RefusalLine, Report
from cli.report.value_formats import format_number, format_size, format_time
from protocol.outline import Row, Section, listed_section

MOST_ACTS = 200
TRACE_COLUMNS = ("time", "type", "source", "guard", "phase", "step")
NO_TOOL = {
    "gate reply": "A reply",
    "person clarification": "A question",
    "person tell": "What a person said",
}
"""What a mistake is that is none with a tool, by who refused it; else it is a phase."""


def deliverables_section(report: Report) -> Section:
    """The deliverables with their sizes; those that do not count stand out."""
    rows = [
        Row(
            each.path,
            cells=(each.path, format_number(each.files), format_size(each.bytes), each.problem),
            is_detail=not each.problem,
        )
        for each in report.deliverables
    ]
    return Section("deliverables", "Deliverables", "", tuple(rows), ("Path", "Files", "Size", ""))


def evidence_section(report: Report) -> Section:
    rows = [(str(each.phase), each.claim, each.held, each.by) for each in report.evidence]
    columns = ("Phase", "Claim", "What held", "By")
    lead = "Looked up by the system before it counted." if rows else ""
    return _table("Evidence", columns, rows, lead)


def incident_sections(report: Report) -> list[Section]:
    """What was refused, what is watched for, and what comes again."""
    refusals = [
        (format_number(row.count), row.kind, row.by, row.tool, _steps_text(row), row.reason)
        for row in report.refusals
    ]
    columns = ("Count", "Kind", "By", "Tool", "Steps", "Commonest reason, as last said")
    heading = "Refusals, replies without a call, errors"
    return [
        _table(heading, columns, refusals, "" if refusals else "None known."),
        Section(
            "report",
            "What is watched for",
            rows=tuple(map(_pattern_row, report.patterns)),
            columns=("Watched for", "Figure", "What was found", "Meaning"),
        ),
        habits_section(report.habits),
    ]


def _steps_text(row: RefusalLine) -> str:
    if row.first_step is None:
        return ""
    last = f" to {row.last_step:,}" if row.last_step != row.first_step else ""
    return f"{row.first_step:,}{last}"


def _pattern_row(pattern: Pattern) -> Row:
    title = f"{pattern.title} · found" if pattern.found else pattern.title
    cells = (title, pattern.figure, "\n".join(pattern.details), pattern.meaning)
    return Row(title, cells=cells, is_detail=not pattern.found)


def habits_section(habits: Sequence[Habit]) -> Section:
    """Mistakes that come again, with how often in each job, the oldest first.

    What a guard refuses that was learned from one counts as well.
    """
    rows = [
        (
            f"{habit.tool or NO_TOOL.get(habit.by, 'A phase')} of {habit.agent}",
            habit.by,
            f"{habit.times:,} times in {habit.met:,} of {len(habit.jobs):,} jobs, {habit.trend}",
            ", ".join(
                f"{job.refused}{f' (+ {job.tried} on trial)' if job.tried else ''}"
                for job in habit.jobs
            ),
            "\n".join(filter(None, [habit.lesson, *habit.guards])),
        )
        for habit in habits
    ]
    columns = ("Mistake", "By", "How often", "In each job, oldest first", "Lesson and guards")
    return _table("Mistakes that come again", columns, rows)


def people_sections(report: Report) -> list[Section]:
    """What people did and decided, and the traces of the job."""
    status = report.status
    acts = [
        (
            _epoch_text(act.at),
            act.by or "a person",
            str(act.phase),
            f"{act.did} ({act.id})" if act.id else act.did,
            "\n".join(filter(None, [act.detail, act.refused and f"refused: {act.refused}"])),
        )
        for act in status.people[-MOST_ACTS:]
    ]
    decisions = [
        f"{each.tool}, asked by {each.guard}: {'approved' if each.approved else 'denied'} by "
        f"{'nobody in time' if each.expired else each.by or 'a person'}"
        + (f", {_epoch_text(each.decided)}" if each.decided else "")
        + (f": {each.reason}" if each.reason else "")
        for each in status.approvals
        if each.expired or not acts
    ]
    traces = [
        (
            *(str("" if trace.get(name) is None else trace[name]) for name in TRACE_COLUMNS),
            _event_text(trace.get("event")),
        )
        for trace in report.traces
    ]
    return [
        _table("What people did", ("When", "Who", "Phase", "What", "In their words"), acts),
        listed_section("report", "Decisions", decisions),
        listed_section("report", "Remarks of people", [] if acts else status.remarks),
        _table("Traces", (*TRACE_COLUMNS, "What happened"), traces),
    ]


def _event_text(event: object) -> str:
    data = event if isinstance(event, dict) else {}
    texts = [data.get("what_happened"), data.get("what_was_correct")]
    return "\n".join(str(text) for text in texts if text)


def _epoch_text(seconds: int) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def _table(
    heading: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], lead: str = ""
) -> Section:
    shown = tuple(Row(cells[0], cells=cells, is_detail=True) for cells in rows)
    return Section("report", heading, lead, shown, columns)

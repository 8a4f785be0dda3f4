"""Recurring mistakes by pattern, over jobs in chronological order."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root
from activities.learning.finished_jobs import finished_jobs
from activities.learning.trace_patterns import Pattern, extract_patterns
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from cli.report.report_content import MOST_COMPARED, MOST_HABITS, Habit, Repeats
from cli.report.sanitize import sanitize_line
from config.learned_guards import LearnedGuards, LearnedRevision

MOST_ENDED = 200
"""Completed jobs that are compared."""

OFTEN = 2
"""Number of traces from which a mistake counts as repeated."""


def find_habits(
    rows: Sequence[Row[Any]],
    learned: Sequence[LearnedRevision],
    ended: Mapping[str, int],
    *,
    job: str = "",
) -> list[Habit]:
    """Return what was refused or corrected repeatedly, most frequent first.

    Args:
        rows: Traces of the compared jobs.
        learned: Newest revisions of guards; what a guard refuses, or would, counts for the pattern
            it came from.
        ended: End times of jobs of the same kind, which may have no traces; epoch seconds by job.
        job: The job the report is about; if set, only patterns of several jobs or of this one are
            returned.
    """
    newest = {row.job: row.at for row in sorted(rows, key=lambda row: row.at)}
    order = sorted({**newest, **ended}.items(), key=lambda item: (item[1], item[0]))
    jobs = [name for name, _ in order][-MOST_COMPARED:]
    patterns = extract_patterns(rows)
    guards_by_pattern = [(pattern, _habit_guard_names(pattern, learned)) for pattern in patterns]
    guard_names = {name for _, names in guards_by_pattern for name in names}
    habits = []
    for pattern, names in guards_by_pattern:
        if pattern.guard in guard_names:
            # Its pattern includes the refusals of this guard.
            continue
        of_guard = [row for row in rows if row.guard in names and row.type == "violation"]
        every = [*pattern.traces, *of_guard]
        jobs_met = {row.job for row in every}
        if len(every) >= OFTEN and (not job or job in jobs_met or len(jobs_met) > 1):
            habits.append(
                _build_habit(pattern, every, [g for g in learned if g.name in names], jobs, job)
            )
    return sorted(habits, key=lambda habit: -habit.times)[:MOST_HABITS]


def _build_habit(
    pattern: Pattern,
    rows: Sequence[Row[Any]],
    guards: Sequence[LearnedRevision],
    jobs: Sequence[str],
    job: str,
) -> Habit:
    return Habit(
        agent=sanitize_line(pattern.agent, 100),
        tool=sanitize_line(pattern.tool, 100),
        by=sanitize_line(f"{pattern.source} {pattern.guard}".strip(), 100),
        lesson=sanitize_line(pattern.lesson, 200),
        trend=pattern.trend,
        guards=[f"{sanitize_line(guard.name, 100)} ({guard.stage})" for guard in guards],
        jobs=[
            Repeats(
                job=sanitize_line(name, 100),
                refused=sum(row.job == name and not row.stage for row in rows),
                tried=sum(row.job == name and bool(row.stage) for row in rows),
                here=name == job,
            )
            for name in jobs
        ],
    )


def _habit_guard_names(pattern: Pattern, learned: Sequence[LearnedRevision]) -> set[str]:
    """Return names of guards whose evidence includes traces of the pattern."""
    numbers = {row.id for row in pattern.traces}
    return {each.name for each in learned if each.guard and numbers & set(each.traces)}


def read_habits(root: Root, project: str, agent: str, job_id: str) -> list[Habit]:
    def is_compared(entry: Any) -> bool:
        return entry.project == project and agent in ("", entry.agent)

    trace_rows = [
        row for row in RelationalStore(root).read(rows.list_stored_traces) if is_compared(row)
    ]
    if not trace_rows:
        return []
    learned = [entry for entry in LearnedGuards(root.path).newest_revisions() if is_compared(entry)]
    names = {root.repository(row.job).stem: row.job for row in trace_rows}
    ended = {
        names.get(folder, folder): job.completed_at
        for folder, job in finished_jobs(root, MOST_ENDED).items()
        if is_compared(job)
    }
    return find_habits(trace_rows, learned, ended, job=job_id)

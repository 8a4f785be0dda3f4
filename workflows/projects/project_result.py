"""The result of a project that ends: its units, what is unresolved, and its use."""

from protocol.job_record import MOST_BYTES
from protocol.project_record import ProjectRecord
from protocol.project_units import ProjectOutcome, ProjectResult, Unit
from protocol.short_text import opening_line, shorten_to_start
from workflows.projects.project_status import project_status_line, project_unit_status
from workflows.rules.project_budget_shares import total_project_usage

MOST_RESULT_BYTES = MOST_BYTES * 2 // 5
"""Longest result in bytes: the status holds it beside the units."""


def project_result(project: ProjectRecord, status: ProjectOutcome, reason: str) -> ProjectResult:
    """Return the result of a project that ends now.

    Texts are cut to fit one payload, since the server ends a run with a larger result. The jobs'
    own results have them whole.
    """
    for most in (None, 300, 100):
        shortened = _cut_project_result(project, status, reason, most)
        if len(shortened.model_dump_json().encode()) <= MOST_RESULT_BYTES:
            return shortened
    return _cut_project_result(project, status, reason, 20)


def _cut_project_result(
    project: ProjectRecord, status: ProjectOutcome, reason: str, most: int | None
) -> ProjectResult:
    unresolved = [
        shorten_to_start(
            f"{unit.id} ({unit.status}): "
            f"{('; '.join(map(opening_line, unit.reasons)) or _unfinished_unit_text(unit))[:most]}",
            500,
        )
        for unit in project.units
        if unit.status != "completed"
    ]
    if status == "failed" and not project.units:
        unresolved += project.findings
    for entries in project.left_open.values():
        unresolved += entries
    by = "1 job" if project.jobs == 1 else f"{project.jobs} jobs"
    return ProjectResult(
        status=status,
        summary=f"{reason + ': ' if reason else ''}{project_status_line(project)}, by {by}.",
        units=[project_unit_status(unit, project, most, ended=True) for unit in project.units],
        unresolved=unresolved,
        dropped=[f"{i.id}: {i.reason[:most]}" for i in project.scope if i.status == "dropped"],
        waits=project.waits,
        usage=total_project_usage(project),
        jobs=project.jobs,
    )


def _unfinished_unit_text(unit: Unit) -> str:
    return "not finished" if unit.status == "in_progress" else "not begun"

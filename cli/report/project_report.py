"""The report of a project: its units, and a report on each of its jobs."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from cli.jobs.job_view import JobView, view_job
from cli.output import UserError
from cli.projects import project_rendering
from cli.report.checkpoint_facts import read_checkpoint_facts
from cli.report.job_report import build_job_report
from cli.report.report_content import MOST_JOBS, Output, ProjectReport, UnitLine
from cli.report.report_store_reader import ReportStoreReader
from cli.report.sanitize import sanitize_line, sanitize_text


async def build_project_report(
    client: Client, job_view: JobView, store: ReportStoreReader
) -> ProjectReport:
    """Report on each job of a project; a remark names each job that cannot be read."""
    ids, units = list_project_job_ids(job_view.status), _list_project_units(job_view.status)
    reports, remarks = [], []
    if not job_view.live:
        remarks.append("No worker answered: only jobs that worked on a unit are known.")
    if len(ids) > MOST_JOBS:
        remarks.append(f"{len(ids) - MOST_JOBS:,} earlier jobs are not listed.")
    for job_id in ids[-MOST_JOBS:]:
        try:
            child_view = await view_job(client, job_id)
            facts = read_checkpoint_facts(child_view.id, child_view)
            reports.append(await build_job_report(client, child_view, facts, store))
        except UserError as error:
            remarks.append(sanitize_line(error))
    again = store.habits(job_view.id)
    return ProjectReport(
        id=sanitize_line(job_view.id),
        title=sanitize_line(job_view.status.get("title")),
        status=sanitize_line(job_view.status_word, 40),
        units=[_compose_unit_line(unit) for unit in units],
        waits=[
            sanitize_line(text) for text in project_rendering.render_project_waits(job_view.status)
        ],
        jobs=reports,
        habits=again,
        remarks=[*remarks, *store.remarks],
    )


def _list_project_units(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Features, groups or stages, as the project answers, else as its result has them."""
    return status.get("units") or (status.get("result") or {}).get("units") or []


def list_project_job_ids(status: dict[str, Any]) -> list[str]:
    """Ids of a project's jobs, in order; without a worker those that its result names."""
    jobs = [*(status.get("jobs") or []), *(status.get("running") or [])]
    jobs = jobs or [
        job for unit in _list_project_units(status) for job in unit.get("history") or []
    ]
    return list(dict.fromkeys(str(job["job"]) for job in jobs))


def _compose_unit_line(unit: dict[str, Any]) -> UnitLine:
    story = project_rendering.render_project_unit_story({**unit, "evidence": []})
    runs = [
        Output(
            line=sanitize_line(project_rendering.render_project_proof(run), 1000),
            end=sanitize_text(run.get("end"), 1000),
            cut=bool(run.get("cut")),
        )
        for run in unit.get("evidence") or []
    ]
    return UnitLine(
        id=sanitize_line(unit["id"]),
        title=sanitize_line(unit["title"]),
        status=sanitize_line(unit["status"], 40),
        attempts=unit["attempts"],
        story=[sanitize_line(text, 1000) for text in story],
        runs=runs,
    )

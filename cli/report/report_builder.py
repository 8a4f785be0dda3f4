"""Builds the report of a job, of a project with its jobs, or of a trial."""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio.client import Client

from cli.jobs.job_view import TRIAL, view_job
from cli.output import UserError
from cli.report.checkpoint_facts import CheckpointFacts, read_checkpoint_facts
from cli.report.job_report import build_job_report, compose_job_report
from cli.report.project_report import build_project_report, list_project_job_ids
from cli.report.report_content import ProjectReport, Report
from cli.report.report_store_reader import ReportStoreReader
from cli.report.trial_report import TrialReport, build_trial_report


async def build_report(client: Client, job_id: str) -> Report | ProjectReport | TrialReport:
    """Return the report of a job, running or closed, of a project with its jobs, or of a trial.

    Raises:
        UserError: There is no such job, or its checkpoints are not in this environment.
    """
    store = ReportStoreReader()
    try:
        job_view = await view_job(client, job_id)
    except UserError as error:
        # Temporal deletes closed workflows after its retention period; the checkpoints stay.
        try:
            facts = read_checkpoint_facts(job_id, None)
        except UserError:
            raise error from None
        report = compose_job_report(
            job_id, None, None, facts, store.traces(job_id), now=datetime.now(UTC)
        )
        return _add_habits_to_report(report, facts, store)
    if job_view.kind == TRIAL:
        return await build_trial_report(client, job_view)
    if job_view.status.get("project"):
        if not list_project_job_ids(job_view.status):
            raise UserError(
                f"{job_id} is a project, and nothing names its jobs but a worker; start one, or "
                "report the jobs one by one"
            )
        return await build_project_report(client, job_view, store)
    facts = read_checkpoint_facts(job_view.id, job_view)
    return _add_habits_to_report(
        await build_job_report(client, job_view, facts, store), facts, store
    )


def _add_habits_to_report(
    report: Report, facts: CheckpointFacts, store: ReportStoreReader
) -> Report:
    """Add recurring mistakes over all jobs of the same agent."""
    report.habits = store.habits(facts.project, facts.agent, report.job.id)
    report.remarks += store.remarks
    return report

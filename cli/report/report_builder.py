"""Builds the report of a job, of a project with its jobs, or of a trial."""

from datetime import UTC, datetime

from temporalio.client import Client

from cli.jobs.job_view import JobView, view_job
from cli.output import UserError
from cli.report.checkpoint_facts import CheckpointFacts, read_checkpoint_facts
from cli.report.job_report import build_job_report, compose_job_report
from cli.report.report_content import MOST_JOBS, AnyReport, ProjectReport, Report, TrialReport
from cli.report.report_store_reader import ReportStoreReader
from cli.report.sanitize import sanitize_line, sanitize_model
from cli.trials.trial_summary import summarise_trial_runs
from cli.trials.trial_usage import with_trial_usages
from engine.web_ui import answering_web_ui_link, job_web_ui_link
from protocol.status import ProjectStatus, TrialStatus

UNKNOWN = "No worker answered, and the trial has not ended: its runs are not known."
NOT_ALL_USED = "No worker answered: what runs used that did not complete is not known."


async def build_report(client: Client, job_id: str) -> AnyReport:
    """Return the report of a job, running or closed, of a project with its jobs, or of a trial.

    Raises UserError: there is no such job, or its checkpoints are not in this environment.
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
    if isinstance(job_view.status, TrialStatus):
        view = await with_trial_usages(client, job_view)
        link = await answering_web_ui_link(view.id, client.namespace)
        return compose_trial_report(view, job_view.status, link, client.namespace)
    if isinstance(job_view.status, ProjectStatus):
        return await _build_project_report(client, job_view.status, store)
    facts = read_checkpoint_facts(job_view.id, job_view)
    return _add_habits_to_report(
        await build_job_report(client, job_view, facts, store), facts, store
    )


def _add_habits_to_report(
    report: Report, facts: CheckpointFacts, store: ReportStoreReader
) -> Report:
    """Add recurring mistakes over all jobs of the same agent."""
    report.habits = store.habits(facts.project, facts.agent, report.status.job_id)
    report.remarks += store.remarks
    return report


def compose_trial_report(
    view: JobView, status: TrialStatus, link: str | None, namespace: str
) -> TrialReport:
    """Return the report of a trial, under way or over, from what was read."""
    status = sanitize_model(status)
    begun_jobs = [run.job for run in status.runs if run.status not in ("pending", "unstarted")]
    return TrialReport(
        status=status,
        started=view.started,
        ended=view.ended,
        read=datetime.now(UTC),
        link=link,
        configurations=summarise_trial_runs(status.runs),
        links={job: job_web_ui_link(job, namespace) or "" for job in begun_jobs} if link else {},
        remarks=[] if view.live else [NOT_ALL_USED if status.runs else UNKNOWN],
    )


async def _build_project_report(
    client: Client, status: ProjectStatus, store: ReportStoreReader
) -> ProjectReport:
    """Report on each job of a project; a remark names each job that cannot be read."""
    ids, reports, remarks = _project_job_ids(status), [], []
    if not ids:
        raise UserError(
            f"{status.job_id} is a project, and nothing names its jobs but a worker; start one, or "
            "report the jobs one by one"
        )
    if not status.live:
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
    return ProjectReport(
        status=sanitize_model(status),
        read=datetime.now(UTC),
        jobs=reports,
        habits=store.habits(status.job_id),
        remarks=[*remarks, *store.remarks],
    )


def _project_job_ids(status: ProjectStatus) -> list[str]:
    """Ids of a project's jobs, in order; without a worker those that its result names."""
    ids = [job.job for job in status.jobs] + [run.job for run in status.running]
    ids = ids or [attempt.job for unit in status.units for attempt in unit.history]
    return list(dict.fromkeys(ids))

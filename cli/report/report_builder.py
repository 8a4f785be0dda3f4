"""Reads the sources of a job's report: its status, checkpoints and Temporal history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import CheckpointMissing, Root, RootError
from activities.learning.finished_jobs import finished_jobs
from activities.stores import stored_traces
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreUnavailableError
from cli.job_files import checkpoint_reader
from cli.jobs.job_view import TRIAL, JobView, view_job
from cli.output import UserError
from cli.projects import project_rendering
from cli.report import checkpoint_facts
from cli.report.checkpoint_facts import CheckpointFacts
from cli.report.habits import find_habits
from cli.report.history import find_history_runs, read_history_events
from cli.report.job_report import compose_job_report
from cli.report.report_content import MOST_JOBS, Habit, Output, ProjectReport, Report, UnitLine
from cli.report.sanitize import sanitize_line, sanitize_text
from cli.report.tally import Tally
from cli.report.trial_report import TrialReport, gather_trial_report
from config.learned_guards import LearnedGuards
from config.schema.agent import ConfigError
from engine.web_ui import answering_web_ui_link
from engine.workspaces_root import workspaces_root

T = TypeVar("T")
MOST_ENDED = 200
"""Completed jobs that are compared."""


class ReportStoreReader:
    """Reads this environment's store; not retried after a failure, since each try takes time."""

    def __init__(self) -> None:
        self.remarks: list[str] = []
        """A remark on missing data if the store did not answer."""

    def traces(self, job_id: str) -> list[dict[str, Any]]:
        """Return a job's traces; empty if they cannot be read."""
        return self._gather_from_store(lambda root: _read_report_traces(root, job_id))

    def habits(self, project: str, agent: str = "", job_id: str = "") -> list[Habit]:
        """Return recurring mistakes; empty if they cannot be read.

        Args:
            project: Project whose jobs are compared; empty for jobs without a project.
            agent: Agent whose jobs are compared; empty for all.
            job_id: The job the report is about, if it is about one.
        """
        return self._gather_from_store(
            lambda root: _gather_stored_habits(root, project, agent, job_id)
        )

    def _gather_from_store(self, work: Callable[[Root], list[T]]) -> list[T]:
        if self.remarks:
            return []
        try:
            return work(Root.open(workspaces_root(), create=False))
        except (StoreUnavailableError, RootError, ConfigError) as error:
            self.remarks.append(
                "Not all traces, and mistakes found from them, could be read: "
                f"{sanitize_line(error)}"
            )
            return []


def _read_report_traces(root: Root, job_id: str) -> list[dict[str, Any]]:
    return [
        {
            "time": f"{datetime.fromtimestamp(row.at, UTC):%Y-%m-%d %H:%M}",
            "type": row.type,
            "source": row.source,
            "guard": row.guard,
            "phase": row.phase,
            "step": row.step,
            "retrieved": row.retrieved,
            "event": {
                "what_happened": row.what_happened,
                "what_was_correct": row.what_was_correct,
                "why": row.why,
            },
        }
        for row in stored_traces.read_job_traces(root, job_id)
    ]


def _gather_stored_habits(root: Root, project: str, agent: str, job_id: str) -> list[Habit]:
    def is_compared(entry: Any) -> bool:
        return entry.project == project and agent in ("", entry.agent)

    trace_rows = [
        row
        for row in RelationalStore(root).read(stored_traces.list_stored_traces)
        if is_compared(row)
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


async def gather_report(client: Client, job_id: str) -> Report | ProjectReport | TrialReport:
    """Return the report of a job, running or closed, of a project with its jobs, or of a trial.

    Raises:
        UserError: There is no such job, or its checkpoints are not in this environment.
    """
    store = ReportStoreReader()
    try:
        job_view = await view_job(client, job_id)
    except UserError as unknown:
        # Temporal deletes closed workflows after its retention period; the checkpoints stay.
        try:
            facts = _gather_checkpoint_facts(job_id, None)
        except UserError:
            raise unknown from None
        report = compose_job_report(
            job_id, None, None, facts, store.traces(job_id), now=datetime.now(UTC)
        )
        return _add_habits_to_report(report, facts, store)
    if job_view.kind == TRIAL:
        return await gather_trial_report(client, job_view)
    if job_view.status.get("project"):
        if not _gather_project_job_ids(job_view.status):
            raise UserError(
                f"{job_id} is a project, and nothing names its jobs but a worker; start one, or "
                "report the jobs one by one"
            )
        return await _gather_project_report(client, job_view, store)
    facts = _gather_checkpoint_facts(job_view.id, job_view)
    return _add_habits_to_report(
        await _gather_job_report(client, job_view, facts, store), facts, store
    )


def _add_habits_to_report(
    report: Report, facts: CheckpointFacts, store: ReportStoreReader
) -> Report:
    """Add recurring mistakes over all jobs of the same agent."""
    report.habits = store.habits(facts.project, facts.agent, report.job.id)
    report.remarks += store.remarks
    return report


async def _gather_job_report(
    client: Client, job_view: JobView, facts: CheckpointFacts, store: ReportStoreReader
) -> Report:
    tally, complete = await _gather_history_tally(client, job_view)
    link = await answering_web_ui_link(job_view.id, client.namespace)
    now, traces = datetime.now(UTC), store.traces(job_view.id)
    return compose_job_report(
        job_view.id, job_view, tally, facts, traces, now=now, complete=complete, link=link
    )


async def _gather_project_report(
    client: Client, job_view: JobView, store: ReportStoreReader
) -> ProjectReport:
    """Report on each job of a project; a remark names each job that cannot be read."""
    ids, units = _gather_project_job_ids(job_view.status), _gather_project_units(job_view.status)
    reports, remarks = [], []
    if not job_view.live:
        remarks.append("No worker answered: only jobs that worked on a unit are known.")
    if len(ids) > MOST_JOBS:
        remarks.append(f"{len(ids) - MOST_JOBS:,} earlier jobs are not listed.")
    for job_id in ids[-MOST_JOBS:]:
        try:
            child_view = await view_job(client, job_id)
            facts = _gather_checkpoint_facts(child_view.id, child_view)
            reports.append(await _gather_job_report(client, child_view, facts, store))
        except UserError as missing:
            remarks.append(sanitize_line(missing))
    again = store.habits(job_view.id)
    return ProjectReport(
        id=sanitize_line(job_view.id),
        title=sanitize_line(job_view.status.get("title")),
        status=sanitize_line(job_view.status_word, 40),
        units=[_project_unit_line(unit) for unit in units],
        waits=[
            sanitize_line(text) for text in project_rendering.render_project_waits(job_view.status)
        ],
        jobs=reports,
        habits=again,
        remarks=[*remarks, *store.remarks],
    )


def _gather_project_units(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Features, groups or stages, as the project answers, else as its result has them."""
    return status.get("units") or (status.get("result") or {}).get("units") or []


def _gather_project_job_ids(status: dict[str, Any]) -> list[str]:
    """Ids of a project's jobs, in order; without a worker those that its result names."""
    jobs = [*(status.get("jobs") or []), *(status.get("running") or [])]
    jobs = jobs or [
        job for unit in _gather_project_units(status) for job in unit.get("history") or []
    ]
    return list(dict.fromkeys(str(job["job"]) for job in jobs))


def _project_unit_line(unit: dict[str, Any]) -> UnitLine:
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


def _gather_checkpoint_facts(job_id: str, job_view: JobView | None) -> CheckpointFacts:
    places = (
        checkpoint_reader.checkpoint_places_from_status(job_view.status)
        if job_view
        else checkpoint_reader.CheckpointPlaces(None, {})
    )
    store = checkpoint_reader.open_checkpoints_for_reading(job_id, places)
    try:
        return checkpoint_facts.read_checkpoints(
            store, checkpoint_reader.checkpoint_commit_at(places, store, None)
        )
    except CheckpointMissing as error:
        raise UserError(
            f"a checkpoint of {job_id} is damaged or not in this store: {error}"
        ) from None


async def _gather_history_tally(client: Client, job_view: JobView) -> tuple[Tally, bool]:
    """Return sums over the job's history, and whether the history was complete."""
    tally = Tally()
    run_chain = await find_history_runs(client, job_view.id, job_view.run_id)
    try:
        async for event in read_history_events(client, job_view.id, run_chain.runs):
            tally.add_event(event)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        # The server deleted a run meanwhile, which is like one deleted earlier.
        return tally, False
    return tally, run_chain.complete

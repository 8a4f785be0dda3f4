"""Reads what a job's report is made of: its status, its checkpoints and its Temporal history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import CheckpointMissing, Root, RootError
from activities.learning.finished import finished
from activities.stores import traces as rows
from activities.stores.away import StoreAway
from activities.stores.engine import Store
from activities.traces import storing
from cli import inspecting, project_view
from cli.jobs import Seen, look
from cli.output import Mistake
from cli.report import kept
from cli.report.compose import compose
from cli.report.data import MOST_JOBS, Habit, Output, ProjectReport, Report, UnitLine
from cli.report.history import chain, happened
from cli.report.kept import Kept
from cli.report.repeating import habits
from cli.report.tally import Tally
from cli.report.words import line, text
from config.learned import LearnedGuards
from config.schema import Problem
from engine.connection import answering_link, workspaces_root

T = TypeVar("T")
MOST_ENDED = 200
"""Completed jobs that are looked up to be compared."""


class Stored:
    """The store of this environment, asked until it does not answer: each try takes its time."""

    def __init__(self) -> None:
        self.away: list[str] = []
        """A remark on what is missing, if it did not answer."""

    def traces(self, job_id: str) -> list[dict[str, Any]]:
        """A job's traces; none where they cannot be read."""
        return self._asked(lambda root: _traces(root, job_id))

    def habits(self, project: str, agent: str = "", job_id: str = "") -> list[Habit]:
        """Mistakes that come again; none where they cannot be read.

        Args:
            project: Whose jobs are compared; empty: those that work for none.
            agent: Of which agent; empty: of each.
            job_id: Whose report it is, if it is a job's.
        """
        return self._asked(lambda root: _habits(root, project, agent, job_id))

    def _asked(self, work: Callable[[Root], list[T]]) -> list[T]:
        if self.away:
            return []
        try:
            return work(Root.open(workspaces_root(), create=False))
        except (StoreAway, RootError, Problem) as error:
            self.away.append(
                f"Not all traces, and what is told by them, could be read: {line(error)}"
            )
            return []


def _traces(root: Root, job_id: str) -> list[dict[str, Any]]:
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
        for row in storing.traces_of(root, job_id)
    ]


def _habits(root: Root, project: str, agent: str, job_id: str) -> list[Habit]:
    def alike(one: Any) -> bool:
        return one.project == project and agent in ("", one.agent)

    found = [row for row in Store(root).read(rows.some) if alike(row)]
    if not found:
        return []
    learned = [one for one in LearnedGuards(root.path).newest() if alike(one)]
    names = {root.repository(row.job).stem: row.job for row in found}
    ended = {
        names.get(folder, folder): one.at
        for folder, one in finished(root, MOST_ENDED).items()
        if alike(one)
    }
    return habits(found, learned, ended, job=job_id)


async def gather(client: Client, job_id: str) -> Report | ProjectReport:
    """The report of a job, running or closed, or the reports of a project's jobs.

    Raises:
        Mistake: there is no such job, or its checkpoints are not in this environment.
    """
    stored = Stored()
    try:
        seen = await look(client, job_id)
    except Mistake as unknown:
        # Temporal forgets closed jobs after a while; the checkpoints stay.
        try:
            held = _kept(job_id, None)
        except Mistake:
            raise unknown from None
        found = compose(job_id, None, None, held, stored.traces(job_id), now=datetime.now(UTC))
        return _compared(found, held, stored)
    if seen.status.get("project"):
        return await _project(client, seen, stored)
    if not seen.live and str(seen.status.get("agent")).startswith("project ("):
        raise Mistake(
            f"{job_id} is a project, and only a worker can name its jobs; start one, or report "
            "the jobs one by one"
        )
    held = _kept(seen.id, seen)
    return _compared(await _job(client, seen, held, stored), held, stored)


def _compared(report: Report, held: Kept, stored: Stored) -> Report:
    """With its mistakes over all jobs of its agent."""
    report.habits = stored.habits(held.project, held.agent, report.job.id)
    report.remarks += stored.away
    return report


async def _job(client: Client, seen: Seen, held: Kept, stored: Stored) -> Report:
    tally, whole = await _tallied(client, seen)
    link = await answering_link(seen.id, client.namespace)
    now, traces = datetime.now(UTC), stored.traces(seen.id)
    return compose(seen.id, seen, tally, held, traces, now=now, whole=whole, link=link)


async def _project(client: Client, seen: Seen, stored: Stored) -> ProjectReport:
    """Of each job what can be had; one that cannot be read is named, and holds nothing up."""
    begun = [*(seen.status.get("jobs") or []), *(seen.status.get("running") or [])]
    ids = list(dict.fromkeys(str(job["job"]) for job in begun))
    reports, remarks = [], []
    if len(ids) > MOST_JOBS:
        remarks.append(f"{len(ids) - MOST_JOBS:,} earlier jobs are not listed.")
    for job_id in ids[-MOST_JOBS:]:
        try:
            begun_job = await look(client, job_id)
            held = _kept(begun_job.id, begun_job)
            reports.append(await _job(client, begun_job, held, stored))
        except Mistake as missing:
            remarks.append(line(missing))
    again = stored.habits(seen.id)
    return ProjectReport(
        id=line(seen.id),
        title=line(seen.status.get("title")),
        status=line(seen.word, 40),
        units=[_unit(unit) for unit in seen.status.get("units") or []],
        waits=[line(told) for told in project_view.waits(seen.status)],
        jobs=reports,
        habits=again,
        remarks=[*remarks, *stored.away],
    )


def _unit(unit: dict[str, Any]) -> UnitLine:
    story = project_view.story({**unit, "evidence": []})
    runs = [
        Output(
            told=line(project_view.proof(run), 1000),
            end=text(run.get("end"), 1000),
            cut=bool(run.get("cut")),
        )
        for run in unit.get("evidence") or []
    ]
    return UnitLine(
        id=line(unit["id"]),
        title=line(unit["title"]),
        status=line(unit["status"], 40),
        attempts=unit["attempts"],
        story=[line(told, 1000) for told in story],
        runs=runs,
    )


def _kept(job_id: str, seen: Seen | None) -> Kept:
    found = inspecting.places_in(seen.status) if seen else inspecting.Places(None, {})
    store = inspecting.repository(job_id, found)
    try:
        return kept.read(store, inspecting.commit_at(found, store, None))
    except CheckpointMissing as error:
        raise Mistake(
            f"a checkpoint of {job_id} is damaged or not in this store: {error}"
        ) from None


async def _tallied(client: Client, seen: Seen) -> tuple[Tally, bool]:
    """The sums over the job's history, and whether all of it was there."""
    tally = Tally()
    found = await chain(client, seen.id, seen.run_id)
    try:
        async for one in happened(client, seen.id, found.runs):
            tally.take(one)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        # A run that the server forgets while we read it is as good as forgotten before.
        return tally, False
    return tally, found.whole

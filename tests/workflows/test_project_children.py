"""Messages from a project's job are kept while the project waits for something else."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.job_record import JobRecord
from protocol.payloads import ReceivedSignal
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_units import ChildReport, EndedJob, ProjectResult, RunningJob
from protocol.requests import CheckpointReply
from protocol.trace_requests import StoreTracesReply, Trace
from protocol.usage import Usage
from tests.workflows.project_records import Play, started
from workflows.project import Project
from workflows.projects.project_children import ProjectChildren, await_project_child
from workflows.projects.project_display import ProjectDisplay
from workflows.projects.project_end import ProjectEnd
from workflows.projects.project_settlement import ProjectSettlement
from workflows.projects.project_signals import ProjectSignals
from workflows.projects.project_steps import ProjectSteps
from workflows.projects.project_waits import ProjectRetries
from workflows.rules.forms import FORMS
from workflows.runtime.activity_calls import GONE
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.cancellation import Cancellation
from workflows.runtime.continuation import Continuation
from workflows.runtime.inbox import Inbox

LATER = Usage(model_calls=7)


def at_work(**limits: Any) -> tuple[Play, RunningJob]:
    """Return a project and its first job."""
    play = Play(started("groups", items=["a", "b"], limits=limits))
    [manager] = play.start()
    return play, play.project.running[manager.job]


async def test_a_report_that_comes_while_a_limit_is_raised_stays() -> None:
    play, run = at_work(tokens=90_000)
    run.share = {"tokens": 45_000}
    run.last_report = ChildReport(job=run.job, status="waiting", waiting="budget")
    asks = ChildReport(job=run.job, status="waiting", waiting="clarification")

    class Answered(ProjectSteps):
        """The job reports its state before the signal counts as sent."""

        async def send_signal(self, job: str, signal: str, payload: dict[str, Any]) -> str | None:
            if "tokens" in payload and run.share["tokens"] == 45_000:
                run.last_report = asks
            return None

    signals = ProjectSignals(play.project, Answered(), Inbox())
    await signals.distribute_shares()
    assert run.share == {"tokens": 90_000}
    assert run.last_report == asks

    run.share = {"tokens": 50_000}
    run.last_report = ChildReport(job=run.job, status="waiting", waiting="budget")
    await signals.distribute_shares()
    assert (run.share, run.last_report.waiting) == ({"tokens": 90_000}, None)


async def test_of_a_job_that_fails_what_it_told_last_is_known() -> None:
    for error in (ApplicationError("broken"), ValueError("no result")):
        _, run = at_work()
        child: Any = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(await_project_child(run, child))
        await asyncio.sleep(0)
        run.last_report = ChildReport(job=run.job, usage=LATER, number=2, checkpoint="c2")
        child.set_exception(error)
        ended = await waiting
        assert (ended.status, ended.usage) == ("failed", LATER)
        assert (ended.checkpoint, ended.phases) == ("c2", 2)


class Unseen(ProjectDisplay):
    """Without a server, nothing is shown."""

    def show_status(self) -> None:
        return

    async def publish_status(self) -> None:
        return


class OneRun(Continuation):
    """Never continues as new, as no history grows without a server."""

    def is_due(self, record: JobRecord | ProjectRecord, events: int) -> bool:
        return False


class Attended(Project):
    """A project whose signals are handled."""

    async def _attend_signals(self, project: ProjectRecord) -> None:
        return


def assembled(record: ProjectRecord, steps: ProjectSteps) -> Project:
    """Return a project outside of a worker."""
    project = Attended()
    project._project, project._steps = record, steps
    project._continuation = OneRun(project.inbox)
    project._form = FORMS[record.start.form]
    project._display = Unseen(record, project.inbox, project._continuation)
    project._children = ProjectChildren(record, steps)
    project._retries = ProjectRetries(record)
    project._settlement = ProjectSettlement(record, steps, project.inbox, project._children)
    project._end = project_end(record, steps)
    return project


def project_end(record: ProjectRecord, steps: ProjectSteps) -> ProjectEnd:
    inbox = Inbox()
    return ProjectEnd(
        record,
        steps,
        inbox,
        children=ProjectChildren(record, steps),
        display=Unseen(record, inbox, OneRun(inbox)),
    )


async def test_a_job_that_a_cancel_keeps_from_beginning_is_none_at_work() -> None:
    class Closing(ProjectSteps):
        async def close_project(
            self, project: ProjectRecord, result: ProjectResult, *, cancel: bool
        ) -> CheckpointReply:
            return CheckpointReply(commit="c9")

    play, run = at_work()
    end = project_end(play.project, Closing())
    await end.end_cancelled(Cancellation("enough", by_signal=False))
    assert play.project.running == {}
    assert [(each.job, each.status) for each in play.project.job_summaries] == [
        (run.job, "cancelled")
    ]
    assert play.project.result is not None
    assert play.project.result.status == "cancelled"


async def test_the_time_of_a_step_that_fails_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(ProjectSteps):
        async def take_work(
            self, project: ProjectRecord, run: RunningJob, ended: EndedJob
        ) -> ChildWork:
            raise StepFailed("take_work", ApplicationError("away"))

        async def store_handoffs(
            self, project: ProjectRecord, handed: list[Trace]
        ) -> StoreTracesReply:
            raise StepFailed("store_traces", ApplicationError("away"))

    play, run = at_work()
    project = assembled(play.project, Failing())
    play.project.traces = [
        Trace(key="1", type="decision", source="gate", what_happened="it went on", step=1,
              phase=1, commit="c1", at=1)
    ]  # fmt: skip
    for steps, take in enumerate(
        (lambda: project._advance(play.project), project._end.has_stored_traces), 1
    ):
        play.project.ended_jobs = [
            EndedJob(job=run.job, status="completed", checkpoint="c1", phases=1)
        ]
        play.project.waiting = None
        play.project.clock = 0
        monkeypatch.setattr(workflow, "now", lambda: datetime.fromtimestamp(30, UTC))
        await take()
        assert play.project.waiting is not None
        assert play.project.seconds == 30 * steps


async def test_what_is_sent_to_all_at_work_is_not_refused_for_one_that_has_just_ended() -> None:
    class Over(ProjectSteps):
        """The project has not heard of the job's end yet."""

        async def send_signal(self, job: str, signal: str, payload: dict[str, Any]) -> str | None:
            return GONE

    play, run = at_work()
    inbox = Inbox()
    signals = ProjectSignals(play.project, Over(), inbox)
    for signal in ("pause", "resume"):
        await signals.handle(ReceivedSignal(signal=signal))
    assert not any(notice.topic == "refused signal" for notice in inbox.notices)
    await signals.handle(ReceivedSignal(signal="answer", payload={"job": run.job, "text": "green"}))
    assert "it has ended" in inbox.notices[-1].text

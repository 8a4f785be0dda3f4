"""What a job of a project tells while the project waits for something else is not lost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.project import ChildReport, EndedJob, ProjectRecord, RunningJob
from protocol.record import ReceivedSignal
from protocol.requests import Usage
from tests.workflows.project_records import Play, started
from workflows.activity_calls import GONE
from workflows.activity_failures import StepFailed
from workflows.project import Project
from workflows.project_lifecycle import ProjectLifecycle
from workflows.project_steps import ProjectSteps, child_outcome

LATER = Usage(model_calls=7)


def at_work(**limits: Any) -> tuple[Play, RunningJob]:
    """A project, and its first job."""
    play = Play(started("groups", items=["a", "b"], limits=limits))
    [manager] = play.start()
    return play, play.project.running[manager.job]


async def test_a_report_that_comes_while_a_limit_is_raised_stays() -> None:
    play, run = at_work(tokens=90_000)
    run.share = {"tokens": 45_000}
    run.last_report = ChildReport(job=run.job, status="waiting", waiting="budget")
    asks = ChildReport(job=run.job, status="waiting", waiting="clarification")

    class Answered(ProjectSteps):
        """The job tells how it stands before the signal counts as sent."""

        async def send_signal(self, job: str, signal: str, payload: dict[str, Any]) -> str | None:
            if "tokens" in payload and run.share["tokens"] == 45_000:
                run.last_report = asks
            return None

    standing = ProjectLifecycle()
    standing._project, standing._steps = play.project, Answered()
    await standing._distribute_shares()
    assert run.share == {"tokens": 90_000}
    assert run.last_report == asks

    run.share = {"tokens": 50_000}
    run.last_report = ChildReport(job=run.job, status="waiting", waiting="budget")
    await standing._distribute_shares()
    assert (run.share, run.last_report.waiting) == ({"tokens": 90_000}, None)


async def test_of_a_job_that_fails_what_it_told_last_is_known() -> None:
    for error in (ApplicationError("broken"), ValueError("no result")):
        _, run = at_work()
        child: Any = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(child_outcome(run, child))
        await asyncio.sleep(0)
        run.last_report = ChildReport(job=run.job, usage=LATER, number=2, checkpoint="c2")
        child.set_exception(error)
        ended = await waiting
        assert (ended.status, ended.usage) == ("failed", LATER)
        assert (ended.checkpoint, ended.phases) == ("c2", 2)


async def test_a_job_that_a_cancel_keeps_from_beginning_is_none_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def written(*_: object, **__: object) -> None:
        """There is no server."""

    monkeypatch.setattr(Project, "_finish_cancellation", written)
    play, run = at_work()
    project = Project()
    project._project = play.project
    await project._close_cancelled("enough", by_signal=False)
    assert play.project.running == {}
    assert [(told.job, told.status) for told in play.project.job_summaries] == [
        (run.job, "cancelled")
    ]


async def test_the_time_of_a_step_that_fails_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Project):
        """Each thing fails that it looks into or stores; there is no server."""

        async def _attend_signals(self) -> None:
            return

        async def _settle_child(self, ended: EndedJob) -> None:
            raise StepFailed("take_work", ApplicationError("away"))

        async def _store_pending_traces(self) -> bool:
            return False

        def _show_status(self, project: ProjectRecord) -> None:
            return

        async def _publish_status(self) -> None:
            return

        def _continue_as_new_if_due(self) -> None:
            return

    play, run = at_work()
    project = Failing()
    project._project = play.project
    for steps, take in enumerate((project._advance, project._has_stored_traces), 1):
        play.project.ended_jobs = [EndedJob(job=run.job, status="completed")]
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
    standing = ProjectLifecycle()
    standing._project, standing._steps = play.project, Over()
    for signal in ("pause", "resume"):
        await standing._apply_signal(ReceivedSignal(signal=signal))
    assert standing._inbox.notices == []
    await standing._apply_signal(
        ReceivedSignal(signal="answer", payload={"job": run.job, "text": "green"})
    )
    assert "it has ended" in standing._inbox.notices[0]

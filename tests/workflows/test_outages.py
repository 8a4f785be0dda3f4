"""A remote that stays away for longer than Temporal retries: jobs and projects go on trying."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from engine.service import build_worker
from protocol.failure_details import OUTAGE
from protocol.job_record import JobRecord
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork, TakeWorkRequest
from protocol.requests import ModelReply, ModelRequest
from rehearsal.wire import Model
from tests.workflows.project_records import started
from tests.workflows.serving import Jobs, client_for
from tests.workflows.short import Short, close, job
from tests.workflows.team import Team, project, write
from tests.workflows.test_project_children import assembled
from workflows.project import Project
from workflows.projects.project_steps import ProjectSteps
from workflows.projects.project_waits import ProjectRetries
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.continuation import Continuation

STAGES = [{"id": "draft", "agent": "generalist", "task": "Draft the menu."}]
TEAM = Team({"Draft the menu": lambda text: [write("repo/menu.md", "tea\n")]})


def outage(first_delay: float) -> ApplicationError:
    return ApplicationError(
        "The remote is away.", first_delay, OUTAGE, type="Dependency", non_retryable=True
    )


class Away:
    """A remote that a step lacks until it is back."""

    def __init__(self) -> None:
        self.is_back = asyncio.Event()

    def fail(self) -> None:
        if not self.is_back.is_set():
            raise outage(0.5)


def model_call_without(away: Away, step: Callable[..., Any]) -> Callable[..., Any]:
    @activity.defn(name="model_call")
    async def model_call(request: ModelRequest) -> ModelReply:
        away.fail()
        reply: ModelReply = await step(request)
        return reply

    return model_call


def take_work_without(away: Away, step: Callable[..., Any]) -> Callable[..., Any]:
    @activity.defn(name="take_work")
    async def take_work(request: TakeWorkRequest) -> ChildWork:
        away.fail()
        work: ChildWork = await step(request)
        return work

    return take_work


@pytest.mark.parametrize(
    ("kind", "start", "model", "step"),
    [
        ("Job", job(), Short({"Close": [close("output/tea.md")]}), model_call_without),
        ("Project", project("pipeline", stages=STAGES), TEAM, take_work_without),
    ],
)
async def test_they_need_no_person_once_it_is_back(
    temporal: Client,
    root: Root,
    kind: str,
    start: dict[str, Any],
    model: Model,
    step: Callable[[Away, Callable[..., Any]], Callable[..., Any]],
) -> None:
    away, queue = Away(), f"away-{kind}"
    openai = client_for(model)
    served = {each.__name__: each for each in all_activities(root, connect=lambda _: openai)}
    name = step.__name__.removesuffix("_without")
    served[name] = step(away, served[name])
    async with build_worker(temporal, root=root, task_queue=queue, activities=[*served.values()]):
        jobs = Jobs(temporal, root, queue)
        handle = await jobs.start(start, kind=kind)
        status = await jobs.until(handle, waiting_for="dependency")
        remedy = f"the {kind.lower()} goes on trying by itself, resume tries at once."
        assert remedy in status["waiting"]["remedy"]
        away.is_back.set()
        result = await jobs.result(handle)
    assert result["status"] == "completed", result


def test_a_project_tries_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(workflow, "time", lambda: now)
    monkeypatch.setattr(workflow, "now", lambda: datetime.fromtimestamp(now, UTC))
    monkeypatch.setattr(workflow, "patched", lambda _: True)
    record = started("features")
    retries = ProjectRetries(record)
    pauses = []
    for _ in range(6):
        retries.park(StepFailed("take_work", outage(30)))
        assert retries.time_left
        pauses.append(retries.time_left)
        assert not retries.is_due
        now += retries.time_left
        assert retries.is_due
    assert pauses == [30, 60, 120, 240, 480, 600]
    retries.note_success()
    assert record.waiting is None
    # What only a person can mend is not tried again.
    retries.park(StepFailed("take_work", ApplicationError("full", type="Storage")))
    assert (retries.time_left, retries.is_due) == (None, False)
    retries.note_success()
    assert record.waiting


async def test_a_project_whose_history_is_long_takes_its_wait_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Continued(Exception):
        """What the next run begins with is in the record."""

    class LongRun(Continuation):
        def is_due(self, record: JobRecord | ProjectRecord, events: int) -> bool:
            return True

        async def begin_run(self, record: JobRecord | ProjectRecord) -> None:
            raise Continued

    now = 0.0
    monkeypatch.setattr(workflow, "time", lambda: now)
    monkeypatch.setattr(workflow, "now", lambda: datetime.fromtimestamp(now, UTC))
    monkeypatch.setattr(workflow, "patched", lambda _: True)
    monkeypatch.setattr(workflow, "cancellation_reason", lambda: None)
    record = started("features")
    project = assembled(record, ProjectSteps())
    project._continuation = LongRun(project.inbox)
    project._retries.park(StepFailed("close_project", outage(30)))
    now = 30
    with pytest.raises(Continued):
        await Project._attend_signals(project, record)
        await project._advance(record)
    assert record.waiting
    assert record.waiting.trying

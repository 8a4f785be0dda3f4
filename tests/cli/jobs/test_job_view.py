"""What `show` reads from Temporal's description of a job."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.api.enums.v1.workflow_pb2 import PENDING_ACTIVITY_STATE_STARTED as STARTED
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.converter import DataConverter

from cli.jobs.job_view import find_own_run, retry_delay_text, view_activities_of_job

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("delay", "text"),
    [(timedelta(minutes=2), " in 120 s"), (timedelta(seconds=-3), ""), (None, "")],
)
def test_the_delay_of_the_next_attempt_is_named(delay, text):
    activity = PendingActivityInfo(attempt=3)
    if delay is not None:
        activity.next_attempt_schedule_time.FromDatetime(NOW + delay)
    assert retry_delay_text(activity, NOW) == text


def test_what_a_projects_job_does_and_tries_again_is_named_with_the_job():
    described = DescribeWorkflowExecutionResponse()
    retried = described.pending_activities.add(attempt=2)
    retried.activity_type.name = "model_call"
    retried.last_failure.CopyFrom(Failure(message="The endpoint answered 429"))
    running = described.pending_activities.add(attempt=1, state=STARTED)
    running.activity_type.name = "model_call"
    running.last_started_time.FromDatetime(NOW)
    watching = described.pending_activities.add(attempt=1, state=STARTED)
    watching.activity_type.name = "watch_retries"

    async def describe():
        return SimpleNamespace(raw_description=described)

    handle = SimpleNamespace(describe=describe)
    client = SimpleNamespace(
        get_workflow_handle=lambda job: handle, data_converter=DataConverter.default
    )
    viewed = asyncio.run(view_activities_of_job(cast("Client", client), "tea.brew-1"))
    [under_way], retrying = viewed
    assert retrying == ["tea.brew-1: model_call: attempt 2, The endpoint answered 429"]
    assert (under_way.job, under_way.activity) == ("tea.brew-1", "model_call")
    assert under_way.since == "2026-07-01T12:00:00Z"


@pytest.mark.parametrize(
    ("kind", "first", "own"),
    [
        # Waited before its first phase until a person cancelled it.
        ("Job", {"state": "waiting: dependency"}, "second"),
        ("Job", {"state": "phase 2", "phase": "2 tactical"}, "first"),
        ("Project", {"state": "1 of 3"}, "first"),
    ],
)
async def test_a_run_that_never_began_hides_no_later_one(
    kind: str, first: dict[str, str], own: str
) -> None:
    def run(name: str, minute: int, memo: dict[str, str]) -> WorkflowExecution:
        async def read_memo() -> dict[str, str]:
            return memo

        failed = SimpleNamespace(
            id="tea", run_id=name, workflow_type=kind, status=WorkflowExecutionStatus.FAILED,
            start_time=NOW + timedelta(minutes=minute), memo=read_memo,
        )  # fmt: skip
        return cast(WorkflowExecution, failed)

    async def list_workflows() -> AsyncIterator[WorkflowExecution]:
        yield run("first", 0, first)

    client = SimpleNamespace(list_workflows=lambda query, limit: list_workflows())
    found = await find_own_run(cast(Client, client), run("second", 1, {}))
    assert found.run_id == own

"""A changed workflow, deployed while jobs are at work."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from cli.checks.doctor import run_doctor_checks
from engine.deployment import pinned_deployment_version
from rehearsal.request_view import RequestView
from tests.workflows.deploying import make_current
from tests.workflows.serving import FAILS, Jobs, serving
from tests.workflows.short import DONE, Call, Short, job
from tests.workflows.team import Team, project, write
from tests.workflows.versions import Guarded, Unguarded
from workflows.job import Job
from workflows.project import Project

Handle = WorkflowHandle[Any, dict[str, Any]]


def work(view: RequestView) -> Sequence[Call]:
    if not view.replies:
        return [("request_clarification", {"question": "Black?", "default": "Yes."})]
    return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]


ASKS = Short({"Work": work})


async def waiting(jobs: Jobs, task_timeout: timedelta | None = None) -> Handle:
    """Return a job at mid-course, where it waits for an answer."""
    handle = await jobs.start(job(), task_timeout=task_timeout)
    await jobs.until(handle, waiting_for="clarification")
    return handle


async def answered(jobs: Jobs, handle: Handle) -> None:
    await handle.signal("answer", {"text": "Green."})
    assert (await jobs.result(handle))["status"] == "completed"


async def counts(handle: Handle) -> bool:
    """Return whether this is a job of the next version, which counts its turns."""
    return "turns" in await (await handle.describe()).memo()


async def test_a_guarded_change_is_for_jobs_begun_after_it_and_others_go_on(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, ASKS, workflows=[Job]) as jobs:
        old = await waiting(jobs)
    async with serving(temporal, root, ASKS, workflows=[Guarded], queue=jobs.queue) as jobs:
        await answered(jobs, old)
        new = await waiting(jobs)
        await answered(jobs, new)
    assert not await counts(old)
    assert await counts(new)


async def test_an_unguarded_change_stops_running_jobs_visibly_and_they_go_on_once_it_is_mended(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal.service_client.config.target_host)
    async with serving(temporal, root, ASKS, workflows=[Job]) as jobs:
        old = await waiting(jobs, FAILS)
    async with serving(temporal, root, ASKS, workflows=[Unguarded], queue=jobs.queue):
        await old.signal("answer", {"text": "Green."})
        async with asyncio.timeout(60):
            while True:
                if old.id in (finding := await doctor("workflow tasks")):
                    break
                await asyncio.sleep(0.5)
        assert "Nondeterminism" in finding or "[TMPRL1100]" in finding
    async with serving(temporal, root, ASKS, workflows=[Guarded], queue=jobs.queue) as jobs:
        assert (await jobs.result(old))["status"] == "completed"


async def doctor(name: str) -> str:
    """Return the doctor's line on a check."""
    [finding] = [check.found async for check in run_doctor_checks() if check.name == name]
    return finding


async def test_with_versioned_workers_jobs_stay_with_the_code_they_or_their_project_began_on(
    temporal: Client, root: Root
) -> None:
    name, stages = f"tea-{root.id}", []
    for number in (1, 2):
        done = {"file_exists": f"repo/{number}.md"}
        task = f"Write menu {number}."
        stages.append({"id": f"s{number}", "agent": "generalist", "task": task, "delivers": [done]})
    team = Team({f"Write menu {n}": partial(menu, n) for n in (1, 2)})
    async with serving(
        temporal,
        root,
        team,
        workflows=[Job, Project],
        deployment=pinned_deployment_version(name, "1"),
    ) as jobs:
        await make_current(temporal, name, "1")
        whole = await jobs.start(
            project("pipeline", stages=stages, set={"limits.history_events": 100}), kind="Project"
        )
        await jobs.until(whole, waiting_for="clarification")
        children = [temporal.get_workflow_handle(f"{whole.id}.s{n}-generalist-1") for n in (1, 2)]
        run = (await children[0].describe()).run_id
        async with serving(
            temporal, root, ASKS, workflows=[Unguarded, Project], queue=jobs.queue,
            deployment=pinned_deployment_version(name, "2"),
        ) as second:  # fmt: skip
            await make_current(temporal, name, "2")
            new = await waiting(second)
            await answered(second, new)
            await whole.signal("answer", {"text": "Green."})
            assert (await jobs.result(whole))["status"] == "completed"
    assert [await build_of(one) for one in (whole, *children, new)] == ["1", "1", "1", "2"]
    assert [await counts(one) for one in (*children, new)] == [False, False, True]
    # This includes the child that continued as new.
    assert (await children[0].describe()).run_id != run


def menu(number: int, opening: str) -> Sequence[Call]:
    asks = [("request_clarification", {"question": "Black?", "default": "Yes."})]
    return [*(asks if number == 1 else []), write(f"repo/{number}.md", "tea\n")]


async def test_a_job_can_be_moved_to_newer_code_that_is_made_for_it(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"tea-{root.id}"
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal.service_client.config.target_host)
    async with serving(
        temporal, root, ASKS, workflows=[Job], deployment=pinned_deployment_version(name, "1")
    ) as jobs:
        monkeypatch.setenv("LONGHAUL_TASK_QUEUE", jobs.queue)
        async with asyncio.timeout(30):
            while True:
                if "not current" in (finding := await doctor("worker")):
                    break
                await asyncio.sleep(0.2)
        assert finding == f"version 1 of {name} is not current"
        await make_current(temporal, name, "1")
        old = await waiting(jobs)
        assert "not current" not in await doctor("worker")
    async with serving(
        temporal,
        root,
        ASKS,
        workflows=[Guarded],
        queue=jobs.queue,
        deployment=pinned_deployment_version(name, "2"),
    ) as jobs:
        await make_current(temporal, name, "2")
        await move(temporal, old)
        await answered(jobs, old)
    assert await build_of(old) == "2"


async def move(client: Client, handle: Handle) -> None:
    """Like `temporal workflow update-options --versioning-override-behavior auto_upgrade`."""
    await client.workflow_service.update_workflow_execution_options(
        UpdateWorkflowExecutionOptionsRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id),
            workflow_execution_options=WorkflowExecutionOptions(
                versioning_override=VersioningOverride(auto_upgrade=True)
            ),
            update_mask=FieldMask(paths=["versioning_override"]),
        )
    )


async def build_of(handle: Handle) -> str:
    execution_info = (await handle.describe()).raw_description.workflow_execution_info
    return execution_info.versioning_info.deployment_version.build_id

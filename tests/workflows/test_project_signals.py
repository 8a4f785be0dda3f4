"""Signals to a project reach its jobs, limits stop them, and a bad signal does no harm."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

from activities.checkpoints import Root
from activities.projects.project_repository import project_repository_path
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import Call
from tests.workflows.team import Team, project, write

ASK: Call = ("request_clarification", {"question": "Green or black?", "default": "green"})


def one_stage(**details: Any) -> dict[str, Any]:
    return project("pipeline", stages=[{"agent": "generalist", "task": "Draft it."}], **details)


def drafting(*calls: Call) -> Team:
    def draft(opening: str) -> Sequence[Call]:
        return [*calls, write("repo/menu.md", "tea\n")]

    return Team({"Draft it": draft})


async def told(jobs: Jobs, job: str, **wanted: Any) -> dict[str, Any]:
    """Return the child's status once it has these values."""
    handle: Any = jobs.client.get_workflow_handle(job)
    return await jobs.until(handle, **wanted)


async def test_pause_resume_answer_and_cancel_reach_the_child(temporal: Client, root: Root) -> None:
    # After the answer it is at work until it is cancelled.
    async with serving(temporal, root, drafting(ASK, ("wait", {"seconds": 3600}))) as jobs:
        handle = await jobs.start(one_stage(limits={"seconds": 900}), kind="Project")
        child = f"{handle.id}.stage-1-generalist-1"
        status = await jobs.until(handle, waiting_for="clarification")
        assert child in status["waiting"]["message"]
        limits = status["limits"]
        # Refused: a bad signal, an unknown one, and one for a job that does not exist.
        await handle.signal("limit", {"phase": {"cost": 1}})
        await handle.signal("rewnid", {})
        await handle.signal("answer", {"job": "nobody", "text": "green"})
        await handle.signal("approve", {})
        await handle.signal("report", "what?")
        status = await jobs.until(handle, refusals=5)
        # Time spent waiting for people does not count for the project.
        assert status["limits"] == limits
        told_all = " ".join(status["notices"])
        assert "a project has no phases" in told_all
        assert "'nobody' is no job at work" in told_all
        assert "signal rewnid: it is not known" in told_all

        # Even during a pause, the job with an open question is found.
        await handle.signal("pause", {})
        await jobs.until(handle, running=lambda runs: runs[0]["waiting"] == "paused")
        await handle.signal("answer", {"text": "black"})
        status = await jobs.until(handle, notices=lambda said: "signal answer" in said[-1])
        assert f"signal answer: handed on to job {child}" in status["notices"]
        await told(jobs, child, clarification=lambda held: held["pending"]["answer"])
        await handle.signal("resume", {})
        await jobs.until(handle, waiting_for=None)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        await told(jobs, child, waiting_for="paused")
        # It goes on with a step of an hour, and the project learns of it before that ends.
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for=None)
        assert [run["waiting"] for run in status["running"]] == [None]
        await handle.signal("pause", {"by": "ben"})
        status = await jobs.until(handle, waiting_for="paused")
        assert status["waiting"]["message"] == "Paused by ben."
        await handle.signal("cancel", {"reason": "enough", "by": "ada"})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        ended = [await temporal.get_workflow_handle(one).describe() for one in (handle.id, child)]
        assert {one.status for one in ended} == {WorkflowExecutionStatus.CANCELED}
        status = await query_status(handle)
        assert status["result"]["status"] == "cancelled"
        assert status["result"]["summary"].startswith("enough: ")
        told_all = " ".join(status["notices"])
        assert "ben paused the project at " in told_all
        assert "ada cancelled the project at " in told_all
        assert [(job["job"], job["status"]) for job in status["jobs"]] == [(child, "cancelled")]
        assert status["result"]["usage"]["model_calls"] > 0


async def test_a_deadline_stands_still_in_a_pause(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, drafting(("wait", {"seconds": 3600}))) as jobs:
        handle = await jobs.start(one_stage(deadline=8, attempts=1), kind="Project")
        await jobs.until(handle, line="0 of 1 stages; generalist on stage-1")
        await handle.signal("pause", {})
        child = f"{handle.id}.stage-1-generalist-1"
        await told(jobs, child, waiting_for="paused")
        await asyncio.sleep(9)
        await told(jobs, child, status="waiting", waiting_for="paused")
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for=None)
        assert [(run["job"], run["waiting"]) for run in status["running"]] == [(child, None)]
        # It has the time that was left before; then it is late.
        result = await jobs.result(handle)
        assert result["unresolved"] == [f"stage-1 (blocked): The deadline of job {child} passed."]


async def test_a_job_that_ends_while_its_project_is_paused_is_no_obstacle(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, drafting(("wait", {"seconds": 3600}))) as jobs:
        handle = await jobs.start(one_stage(attempts=1), kind="Project")
        await jobs.until(handle, line="0 of 1 stages; generalist on stage-1")
        await handle.signal("pause", {})
        child = f"{handle.id}.stage-1-generalist-1"
        await told(jobs, child, waiting_for="paused")
        await temporal.get_workflow_handle(child).signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await temporal.get_workflow_handle(child).result()
        ended = "0 of 1 stages; the system examines its work for stage-1"
        status = await jobs.until(handle, line=ended, running=[])
        assert [(job["job"], job["status"]) for job in status["jobs"]] == [(child, "ended")]
        assert (await (await handle.describe()).memo())["state"] == ended
        await handle.signal("pause", {})
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "failed"
        status = await query_status(handle)
        assert status["refusals"] == 0, status["notices"]


async def test_what_a_job_had_planned_that_is_terminated_goes_on_in_the_next(
    temporal: Client, root: Root
) -> None:
    wait: list[Call] = [("wait", {"seconds": 3600})]
    team = Team({"Draft it": lambda told: [*wait, write("repo/menu.md", "tea\n")]})
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(one_stage(), kind="Project")
        await jobs.until(handle, running=lambda runs: bool(runs and "phase 2" in runs[0]["phase"]))
        wait.clear()
        name = f"{handle.id}.stage-1-generalist"
        await temporal.get_workflow_handle(f"{name}-1").terminate("by hand")
        assert (await jobs.result(handle))["status"] == "completed"
        assert "-1 ended as failed: Terminated" in team.asked[1]
        ended: dict[str, Any] = await temporal.get_workflow_handle(f"{name}-2").result()
        # From the start of phase 2, with one phase of its own before the work and one after it.
        assert ended["phases"] == 5
        project_jobs = (await query_status(handle))["jobs"]
        assert [job["summary"] for job in project_jobs] == [
            "Terminated",
            "Did it.\nFiles changed: menu.md.",
        ]


async def test_a_limit_of_the_project_stops_the_child_at_work_and_a_raise_lets_it_go_on(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, drafting(ASK)) as jobs:
        handle = await jobs.start(one_stage(limits={"model_calls": 50}), kind="Project")
        child = f"{handle.id}.stage-1-generalist-1"
        await jobs.until(handle, waiting_for="clarification")
        # Shares are taken back from jobs at work.
        await handle.signal("limit", {"model_calls": 3})
        await handle.signal("answer", {"text": "black"})
        status = await jobs.until(handle, waiting_for="budget")
        assert status["limits"]["project"]["model_calls"]["limit"] == 3
        stopped = await told(jobs, child, waiting_for="budget")
        assert stopped["usage"]["model_calls"] <= 3
        await handle.signal("limit", {"model_calls": 100})
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert 3 < result["usage"]["model_calls"] <= 100
        # Which job waited, and why.
        assert [(each["job"], each["reason"]) for each in result["waits"]] == [
            (child, "clarification"),
            (child, "budget"),
        ]
        assert all(each["message"] for each in result["waits"])


async def test_temporals_own_cancellation_reaches_the_child(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, drafting(ASK)) as jobs:
        handle = await jobs.start(one_stage(), kind="Project")
        await jobs.until(handle, waiting_for="clarification")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        child = temporal.get_workflow_handle(f"{handle.id}.stage-1-generalist-1")
        assert (await child.describe()).status == WorkflowExecutionStatus.CANCELED
        assert (await query_status(handle))["result"]["status"] == "cancelled"


@pytest.mark.parametrize("way", ["signal", "temporal", "deadline", "terminate"])
async def test_a_child_that_went_on_as_new_is_ended_as_well(
    temporal: Client, root: Root, way: str
) -> None:
    deadline = 6 if way == "deadline" else None
    stages = [{"agent": "generalist", "task": "Draft it.", "deadline": deadline}]
    start = project("pipeline", stages=stages, attempts=1, set={"limits.history_events": 100})
    async with serving(temporal, root, drafting(ASK)) as jobs:
        handle = await jobs.start(start, kind="Project")
        await jobs.until(handle, waiting_for="clarification")
        child = temporal.get_workflow_handle(f"{handle.id}.stage-1-generalist-1")
        first = (await child.describe()).run_id
        while (await child.describe()).run_id == first:
            await child.signal("nudge", {})
        if way == "deadline":
            assert "deadline" in (await jobs.result(handle, 30))["unresolved"][0]
        elif way == "terminate":
            await handle.terminate()
            with pytest.raises(WorkflowFailureError):
                await jobs.result(cast("Any", child), 30)
        else:
            await (handle.cancel() if way == "temporal" else handle.signal("cancel", {}))
            with pytest.raises(WorkflowFailureError):
                await jobs.result(handle, 30)
            assert (await query_status(handle))["result"]["status"] == "cancelled"
        assert (await child.describe()).status == WorkflowExecutionStatus.CANCELED


async def test_a_second_cancel_loses_no_result(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, drafting(ASK)) as jobs:
        handle = await jobs.start(one_stage(), kind="Project")
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("cancel", {"reason": "enough"})
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle, 30)
        status = await query_status(handle)
        assert (status["result"]["status"], status["running"]) == ("cancelled", [])


async def test_a_cancel_whose_closing_fails_is_over_once_temporal_cancels(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    async with serving(temporal, root, drafting(ASK)) as jobs:
        handle = await jobs.start(one_stage(), kind="Project")
        await jobs.until(handle, waiting_for="clarification")
        shutil.move(project_repository_path(root, handle.id), tmp_path / "kept.git")
        await handle.signal("cancel", {})
        await jobs.until(handle, waiting=lambda now: "tried again" in now["remedy"])
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle, 20)
        assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED


async def test_a_deadline_takes_the_work_back_and_a_precondition_holds_before_the_first_call(
    temporal: Client, root: Root
) -> None:
    stages = [
        {"agent": "generalist", "task": "Draft it.", "deadline": 3},
        {"agent": "generalist", "task": "Never."},
    ]
    async with serving(temporal, root, drafting(ASK)) as jobs:
        handle = await jobs.start(project("pipeline", stages=stages, attempts=1), kind="Project")
        result = await jobs.result(handle)
        assert result["status"] == "failed"
        assert "deadline" in result["unresolved"][0]

        needs = [{"file_exists": "repo/cups.md"}]
        stages = [{"agent": "generalist", "task": "Draft it.", "needs": needs}]
        handle = await jobs.start(project("pipeline", stages=stages), kind="Project")
        result = await jobs.result(handle)
        assert "the precondition does not hold" in result["unresolved"][0]
        assert result["usage"]["model_calls"] == 0


async def test_goes_on_as_new_between_jobs_and_a_bad_start_says_what_is_wrong(
    temporal: Client, root: Root
) -> None:
    team = Team({"Step": lambda told: [write("repo/menu.md", told[:20])]})
    stages = [{"agent": "generalist", "task": f"Step {n}."} for n in (1, 2)]
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(
            project("pipeline", stages=stages, history_events=10), kind="Project"
        )
        result = await jobs.result(handle)
        assert (result["status"], result["jobs"]) == ("completed", 2)
        runs = [run async for run in temporal.list_workflows(f'WorkflowId="{handle.id}"')]
        assert len(runs) >= 2

        # A project too large for a payload continues in its present run.
        large = {"unit": ["x" * 2_096_000]}
        handle = await jobs.start(
            project("pipeline", stages=stages[:1], proof=large, history_events=10), kind="Project"
        )
        assert (await jobs.result(handle))["status"] == "completed"

        for *wrong, why in (
            ('found 0 values; expected {"form"',),
            ({"form": "groups", "instructions": "x"}, "divides a scope"),
            ({"form": "features", "instruction": "x"}, "instruction: unknown key"),
            ({**project("features"), "agents": {"coder": "nobody"}}, "'nobody' is not known"),
            ({"form": "pipeline", "instructions": "x"}, "has stages"),
            (
                project("groups", items=["茶" * 166] * 2000, set={"description": "d" * 200_000}),
                "the scope and the settings have 1,2",
            ),
            ({**project("features"), "product": "notes"}, "every job writes to notes/"),
            (
                {**project("features"), "proof": {"unit": []}},
                "proof.unit: list should have at least",
            ),
        ):
            bad = await jobs.start(*wrong, kind="Project")
            with pytest.raises(WorkflowFailureError) as failed:
                await jobs.result(bad)
            assert why in str(failed.value.cause)
            if "not known" in why:
                # Shown in a list of jobs.
                assert (await (await bad.describe()).memo())["agent"] == "project (features)"

"""Rewinding: by the agent, by a person, by Temporal's own reset."""

import asyncio
from typing import Any

import pytest
import yaml
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from activities.checkpoints import Root
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.stores.stored_traces import read_job_traces
from rehearsal import Hang, call
from tests.soak import soak
from tests.workflows.deviating import Deviating
from tests.workflows.resting import at_todo
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Call, Short, hand_over, job
from tests.workflows.tea import in_phase, start_of
from tests.workflows.team import Team, project, write


async def test_rewind_to_phase_1_restores_files_and_can_be_undone(
    temporal: Client, root: Root
) -> None:
    # It asks, and stays where the test looks at it.
    ask = call("request_clarification", question="Which tea?", default="Any.")
    async with serving(temporal, root, Deviating({3: ask, 4: ask}, Short())) as jobs:
        handle = await jobs.start(job(set={"limits.clarifications": 2}))
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("pause", {})
        paused = await jobs.until(handle, waiting_for="paused")
        number = paused["phase"]["number"]
        assert number == 3
        starts = {entry["phase"]: entry["id"] for entry in paused["checkpoints"]}

        await handle.signal("rewind", {"issue": "The plan missed white tea.", "phase": 1})
        status = await jobs.until(handle, waiting_for="clarification", rewinds=1)
        assert status["rewinds"] == 1
        back = jobs.snapshot(handle, start_of(status, number + 1))
        assert back.state.phase.purpose == "rewind"
        assert _own_files(back) == _own_files(jobs.snapshot(handle, starts[1]))
        assert back.files.entry("output/tea.md") is None
        # The reason, and the list of what is undone, survive the restore.
        assert "white tea" in str(back.conversation.messages()[1]["content"])
        failed = yaml.safe_load(back.read_text(f"archive/phase_{number:03d}.yaml"))
        assert failed["issue"] == "The plan missed white tea."
        assert failed["undone"] is True
        assert yaml.safe_load(back.read_text("archive/phase_002.yaml"))["undone"] is True

        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        await handle.signal("rewind", {"issue": "It had not, after all.", "phase": 3})
        status = await jobs.until(handle, phase=in_phase(number + 2))
        undone = jobs.snapshot(handle, start_of(status, number + 2))
        assert _own_files(undone) == _own_files(jobs.snapshot(handle, starts[3]))
        assert "undone" not in yaml.safe_load(undone.read_text("archive/phase_002.yaml"))
        assert (
            yaml.safe_load(undone.read_text(f"archive/phase_{number + 1:03d}.yaml"))["undone"]
            is True
        )

        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert result["rewinds"] == 2


async def test_rewind_without_phase_keeps_the_work(temporal: Client, root: Root) -> None:
    model = Short({"Hand": [hand_over({}, {}), DONE]})
    async with serving(temporal, root, at_todo(phase=2, number=2, model=model)) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, waits_until=bool)
        await handle.signal("rewind", {"issue": "Too dry."})
        snapshot = await rewound(jobs, handle)
        assert snapshot.read_text("plan.md")
        archived = yaml.safe_load(snapshot.read_text("archive/phase_002.yaml"))
        assert archived["outcome"] == "rewound"
        assert "interrupted" in [todo["status"] for todo in archived["todos"]]
        assert (await jobs.result(handle))["rewinds"] == 1


async def rewound(jobs: Jobs, handle: WorkflowHandle[Any, Any]) -> Snapshot:
    """Return the start of the phase that a rewind began, wherever the job is by now."""
    status = await jobs.until(handle, rewinds=1)
    starts = [jobs.snapshot(handle, entry["id"]) for entry in status["checkpoints"]]
    [rewind_start] = [start for start in starts if start.state.phase.purpose == "rewind"]
    return rewind_start


async def test_rewind_can_keep_the_files(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, at_todo(phase=2, number=1, model=Short())) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, waits_until=bool)
        await handle.signal("rewind", {"issue": "Again.", "phase": 1, "restore_files": False})
        assert (await rewound(jobs, handle)).read_text("plan.md")
        assert (await jobs.result(handle))["status"] == "completed"


async def test_agent_may_rewind_so_often_then_a_person_is_asked(
    temporal: Client, root: Root
) -> None:
    panic = ("todo_rewind", {"issue": "This cannot work."})
    async with serving(temporal, root, Short({"Work": [panic]})) as jobs:
        handle = await jobs.start(job(set={"limits.rewinds": 2}))
        status = await jobs.until(handle, waiting_for="rewinds")
        assert status["rewinds"] == 2
        rewound = [row for row in read_job_traces(root, handle.id) if row.type == "outcome"]
        assert {row.why for row in rewound} >= {"This cannot work."}
        await handle.signal("resume", {})
        status = await jobs.until(handle, rewinds=3, waiting_for="rewinds")
        await handle.signal("cancel", {})


async def reset(
    jobs: Jobs, handle: WorkflowHandle[Any, Any], run_id: str, share: float
) -> WorkflowHandle[Any, Any]:
    """Use Temporal's reset to the workflow task after that share of a run's history."""
    run = jobs.client.get_workflow_handle(handle.id, run_id=run_id)
    events = (await run.fetch_history()).events
    completed = [
        event.event_id
        for event in events
        if event.WhichOneof("attributes") == "workflow_task_completed_event_attributes"
    ]
    answer = await jobs.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=jobs.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=run_id),
            reason="test",
            workflow_task_finish_event_id=completed[int(len(completed) * share)],
            request_id=f"{handle.id}-{share}",
            reset_reapply_exclude_types=[ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL],
        )
    )
    return jobs.client.get_workflow_handle(handle.id, run_id=answer.run_id, result_type=dict)


@pytest.mark.parametrize("share", soak([0.0, 0.7], [0.0, 0.3, 0.5, 0.7]))
async def test_temporal_reset_leaves_job_and_files_consistent(
    temporal: Client, root: Root, undisturbed: str, share: float
) -> None:
    model = Deviating({3: Hang()}, Short())
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        await model.hangs()
        again = await reset(jobs, handle, handle.first_execution_run_id or "", share)
        result = await jobs.result(again)
        assert result["tree"] == undisturbed
        files = jobs.snapshot(handle, result["checkpoint"]).files
        for path in result["deliverables"]:
            assert (jobs.folder(handle) / path).read_bytes() == files.read(path)


async def test_reset_into_an_earlier_run_of_the_chain(temporal: Client, root: Root) -> None:
    small = job(set={"limits.history_events": 100})
    model = Deviating({}, Short({"Hand": [hand_over(*[{}] * 9), DONE]}))
    async with serving(temporal, root, model) as jobs:
        tree = str((await jobs.result(await jobs.start(small)))["tree"])
        calls = len(model.requests)
        model.answers[2 * calls] = Hang()
        handle = await jobs.start(small)
        await model.hangs()
        assert (await handle.describe()).run_id != handle.first_execution_run_id
        again = await reset(jobs, handle, handle.first_execution_run_id or "", 0.5)
        async with asyncio.timeout(60):
            await again.result(follow_runs=True)
        result = await jobs.result(jobs.client.get_workflow_handle(handle.id, result_type=dict))
        assert result["tree"] == tree


async def test_a_cancelled_project_is_reset_and_its_jobs_begin_anew_under_their_ids(
    temporal: Client, root: Root
) -> None:
    draft: list[list[Call]] = [[("wait", {"seconds": 3600})], [write("repo/menu.md", "tea\n")]]
    team = Team({"Draft it": lambda told: draft[0]})
    async with serving(temporal, root, team) as jobs:
        start = project("pipeline", stages=[{"agent": "generalist", "task": "Draft it."}])
        handle = await jobs.start({**start, "attempts": 1}, kind="Project")
        child: Any = temporal.get_workflow_handle(f"{handle.id}.stage-1-generalist-1")
        await jobs.until(handle, running=lambda runs: bool(runs and runs[0]["phase"]))
        await jobs.until(child, waits_until=bool)
        await handle.signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        del draft[0]
        again = await reset(jobs, handle, handle.first_execution_run_id or "", 0)
        result = await jobs.result(again)
        assert (result["status"], result["jobs"]) == ("completed", 1), result
        repository = ProjectRepository(project_repository_path(root, handle.id))
        assert repository.read_file(result["commit"], "menu.md") == b"tea\n"


def _own_files(snapshot: Any) -> dict[str, str]:
    """Return the agent's files, without those of the system."""
    system_paths = ("archive", "workspace_summary.md", "tools/")
    return {
        entry.path: entry.id
        for entry in snapshot.files.walk()
        if not entry.path.startswith(system_paths)
    }

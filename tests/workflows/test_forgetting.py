"""Forgetting: the files of a closed job are deleted, and nothing that is still in use."""

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from activities.checkpoints import CheckpointMissing, Checkpoints, Root, open_checkpoints
from activities.checkpoints.forgotten_records import (
    ForgottenJob,
    find_forgotten_record,
    write_forgotten_record,
)
from activities.checkpoints.repository_owner import OWNER_FILE, OwnerMark
from activities.forgetting.job_files import LOCKS, has_job_files, job_paths
from activities.job.activity_context import fetch_snapshot
from activities.requirements.requirement import Citation, Requirement
from activities.requirements.store_sync import match_rows_to_workspace
from activities.stores.outbox import Call as StoreCall
from activities.stores.relational_store import RelationalStore
from activities.stores.stored_traces import read_job_traces
from tests.activities.stores.filling import list_job_requirements
from tests.activities.traces.noting import store, trace
from tests.workflows.scheduled import fired
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Short, job
from tests.workflows.team import Team, project, write

ASKS = Short({"Work": [("request_clarification", {"question": "Black?", "default": "Yes."}), DONE]})


async def done(jobs: Jobs, **details: Any) -> WorkflowHandle[Any, dict[str, Any]]:
    handle = await jobs.start(job(**details))
    assert (await jobs.result(handle))["status"] == "completed"
    return handle


async def forget(jobs: Jobs, name: str = "", **asked: Any) -> dict[str, Any]:
    request = {"job": name, **asked} if name else asked
    return await jobs.result(await jobs.start(*([request] if request else []), kind="Forget"))


async def refused(jobs: Jobs, *given: Any) -> str:
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(await jobs.start(*given, kind="Forget"))
    error: Any = failed.value
    while error.__cause__:
        error = error.__cause__
    return str(error.message)


async def test_a_closed_job_goes_and_its_fork_goes_on(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        first = await done(jobs, set={"todos.fork": ["Rethink", "Hand over"]})
        fork = await jobs.start({"fork": {"job": first.id, "phase": 2}, "instructions": "Again."})
        await jobs.until(fork, phase=lambda phase: phase and phase["number"] >= 3)
        base = (await fork.query("status"))["checkpoints"][0]["id"]
        assert await forget(jobs, first.id) == {"jobs": [first.id], "count": 1, "notes": []}
        assert not has_job_files(root, first.id)
        assert (await jobs.result(fork))["status"] == "completed"
        assert open_checkpoints(root, fork.id).is_intact(base)

        # A second time changes nothing; nobody can fork it or reuse its name.
        record = find_forgotten_record(root, first.id)
        assert record
        again = await forget(jobs, first.id)
        assert again == {"jobs": [], "count": 0, "notes": [record.message]}
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(await jobs.start({"fork": {"job": first.id, "phase": 2}}))
        assert record.message in str(failed.value.cause)
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(await jobs.start(job(), job_id=first.id))
        assert record.message in str(failed.value.cause)
        assert not has_job_files(root, first.id)


async def test_only_what_is_over_is_forgotten(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, ASKS) as jobs:
        running = await jobs.start(job())
        await jobs.until(running, status="waiting")
        message = await refused(jobs, {"job": running.id})
        assert message.startswith(f"job {running.id} is running")
        assert f"starter.py cancel {running.id}" in message
        assert "there is no job 'nobody'" in await refused(jobs, {"job": "nobody"})
        assert "there is no job '../nobody'" in await refused(jobs, {"job": "../nobody"})
        other = await jobs.start(kind="Learning")
        await jobs.result(other)
        assert "a workflow of type Learning" in await refused(jobs, {"job": other.id})
        assert "its keys are: job, traces, requirements" in await refused(jobs, {"name": "x"})
        assert has_job_files(root, running.id)
        await running.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(running)
        assert (await forget(jobs, running.id))["jobs"] == [running.id]


async def test_the_store_keeps_what_a_job_left_unless_asked(jobs: Jobs) -> None:
    root, handle = jobs.root, await jobs.start(job(agent="nobody"))
    with pytest.raises(WorkflowFailureError):
        await jobs.result(handle)
    store(root, trace(1, "tea"), job=handle.id)
    store(root, trace(2, "tea"), job="another")
    cited = Citation(id="CIT-0001", document="documents/a.md", page=1, quote="tea")
    for name in (handle.id, "another"):
        requirement = Requirement(
            id="REQ-001", job=name, text="Tea.", type="data", source=cited.document,
            citations=[cited], reasoning="It says so.", confidence=0.9,
        )  # fmt: skip
        call = StoreCall(name, f"{name}.1", 1)
        rows = {requirement.id: "b"}
        RelationalStore(root).run(
            partial(match_rows_to_workspace, call=call, present=rows, changed=[(requirement, "b")])
        )

    def kept() -> list[int]:
        return [
            size
            for name in (handle.id, "another")
            for size in (
                len(read_job_traces(root, name)),
                len(RelationalStore(root).run(lambda c, n=name: list_job_requirements(c, n))),  # type: ignore[misc]
            )
        ]

    # It failed before it had written anything to disk.
    assert "nothing of" in (await forget(jobs, handle.id))["notes"][0]
    assert kept() == [1, 1, 1, 1]
    await forget(jobs, handle.id, traces=True)
    assert kept() == [0, 1, 1, 1]
    await forget(jobs, handle.id, requirements=True)
    assert kept() == [0, 0, 1, 1]


async def test_with_a_project_go_its_jobs_and_never_before_it(temporal: Client, root: Root) -> None:
    stage = {"id": "draft", "agent": "generalist", "task": "Draft the menu."}
    stage["delivers"] = [{"file_exists": "repo/menu.md"}]  # type: ignore[assignment]
    asks = [("request_clarification", {"question": "Black?", "default": "Yes."})]
    team = Team({"Draft the menu": lambda told: [*asks, write("repo/menu.md", "tea\n")]})
    async with serving(temporal, root, team) as jobs:
        whole = await jobs.start(project("pipeline", stages=[stage]), kind="Project")
        status = await jobs.until(whole, waiting_for="clarification")
        child = status["running"][0]["job"]
        assert f"job {whole.id} is running" in await refused(jobs, {"job": whole.id})
        await jobs.client.get_workflow_handle(child).terminate()
        # The project's next job comes to the same question.
        await jobs.until(
            whole,
            running=lambda found: found and found[0]["job"] != child,
            waiting_for="clarification",
        )
        message = await refused(jobs, {"job": child})
        assert f"works for project {whole.id}, which is running" in message
        await whole.signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(whole)
        names = sorted(path.name for path in root.path.glob("[!.]*"))
        forgotten = await forget(jobs, whole.id)
        assert forgotten["count"] == 3
        assert forgotten["jobs"][-1] == whole.id
        assert child in forgotten["jobs"]
        assert [name for name in names if (root.path / name).exists()] == []
        assert [place for place in job_paths(root, whole.id) if place.exists()] == []


async def test_a_schedule_forgets_what_was_closed_longer_ago_than_it_is_kept(
    temporal: Client, root: Root
) -> None:
    second = 1 / 86_400
    async with serving(temporal, root, Short()) as jobs:
        older = await done(jobs, set={"keep_days": 3 * second})
        younger = await done(jobs, set={"keep_days": 1})
        retained = await done(jobs)
        async with serving(temporal, root, ASKS) as others:
            running = await others.start(job(set={"keep_days": second}))
            await others.until(running, status="waiting")
            # Half forgotten, by a process that was killed.
            write_forgotten_record(root, ForgottenJob(job="half", timestamp=1))
            half = root.workspace("half")
            half.mkdir()
            closed, result = await fired(jobs, "Forget", lambda done: older.id in done["jobs"])
            assert result["jobs"][-1] == older.id
            ended = (await older.describe()).close_time
            assert ended
            assert (closed - ended).total_seconds() >= 3
            assert not half.exists()
            assert [has_job_files(root, one.id) for one in (younger, retained, running)] == [
                True
            ] * 3
            await running.terminate()


async def test_of_jobs_that_temporal_no_longer_knows_the_repository_tells_the_age(
    jobs: Jobs,
) -> None:
    for name, namespace in (("old", "default"), ("new", "default"), ("elsewhere", "other")):
        store = Checkpoints.create(jobs.root, name)
        mark = OwnerMark(chain="x", job=name, namespace=namespace, keep_days=2)
        (store.path / OWNER_FILE).write_text(mark.model_dump_json())
        if name != "new":
            for path in [store.path, *store.path.rglob("*")]:
                os.utime(path, (1_700_000_000, 1_700_000_000))
    assert (await forget(jobs))["jobs"] == ["old"]
    assert [has_job_files(jobs.root, name) for name in ("old", "new", "elsewhere")] == [
        False, True, True,
    ]  # fmt: skip
    assert "ran in the namespace other" in await refused(jobs, {"job": "elsewhere"})


async def test_one_that_cannot_be_forgotten_now_keeps_no_other_from_it(jobs: Jobs) -> None:
    for name in ("locked", "taken", "free"):
        store = Checkpoints.create(jobs.root, name)
        mark = OwnerMark(chain="x", job=name, namespace="default", keep_days=2)
        (store.path / OWNER_FILE).write_text(mark.model_dump_json())
        for path in [store.path, *store.path.rglob("*")]:
            os.utime(path, (1_700_000_000, 1_700_000_000))
    # As if a frozen process held its lock: an OSError.
    (jobs.root.repository("locked") / LOCKS[0]).mkdir()
    write_forgotten_record(jobs.root, ForgottenJob(job="locked", timestamp=1))
    other = await jobs.client.start_workflow("Other", id="taken", task_queue="nobody")
    try:
        report = await forget(jobs)
    finally:
        await other.terminate()
    assert report["jobs"] == ["free"]
    assert [has_job_files(jobs.root, name) for name in ("locked", "taken", "free")] == [
        True, True, False,
    ]  # fmt: skip
    assert "locked stays for now: [Errno 21]" in report["notes"][0]
    assert any(
        "'taken' is not a job but a workflow of type Other" in note for note in report["notes"]
    )


def bare(path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return path


def listed(remote: Path) -> str:
    command = ["git", "--git-dir", str(remote), "for-each-ref", "--format=%(refname)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def test_with_a_remote_a_job_goes_there_too_and_does_not_come_back(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    remote = bare(tmp_path / "remote.git")
    settings = {"workspace.remote": f"file://{remote}"}
    async with serving(temporal, root, Short()) as jobs:
        first, other = await done(jobs, set=settings), await done(jobs, set=settings)
        commit = (await first.query("status"))["checkpoint"]
        assert f"jobs/{first.id}/" in listed(remote)
        result = await forget(jobs, first.id)
        assert result["jobs"] == [first.id]
        [note] = result["notes"]
        assert note.startswith(f"the remote file://{remote} names nothing of {first.id} any more")
        assert [line for line in listed(remote).split() if first.id in line] == [
            f"refs/longhaul/jobs/{first.id}/owner/forgotten-{record_of(root, first.id).timestamp}"
        ]
        assert f"jobs/{other.id}/" in listed(remote)
        # Neither this host nor one with another root brings it back.
        for place in (root, Root.open(tmp_path / "other", create=True)):
            with pytest.raises(CheckpointMissing, match="was forgotten"):
                fetch_snapshot(place, first.id, f"file://{remote}", commit)
        assert not has_job_files(root, first.id)
        assert (await forget(jobs, first.id))["count"] == 0


async def test_a_remote_that_is_away_is_named_and_cleared_later(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    remote = bare(tmp_path / "remote.git")
    async with serving(temporal, root, Short()) as jobs:
        handle = await done(jobs, set={"workspace.remote": f"file://{remote}"})
        remote.rename(tmp_path / "away")
        result = await forget(jobs, handle.id)
        assert result["jobs"] == [handle.id]
        assert f"{handle.id} in the remote file://{remote} stay for now" in result["notes"][0]
        assert not has_job_files(root, handle.id)
        (tmp_path / "away").rename(remote)
        assert (await forget(jobs, handle.id))["jobs"] == [handle.id]
    assert "/forgotten-" in listed(remote)
    assert "/runs/" not in listed(remote)


def record_of(root: Root, name: str) -> ForgottenJob:
    record = find_forgotten_record(root, name)
    assert record
    return record

"""Starting a job is no shell on the worker: plain JSON, as anybody sends who may start jobs."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from rehearsal import Failure
from rehearsal.wire import Answer, Request
from tests.activities.source_repository.origins import WorkTree
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import Short, job
from tests.workflows.team import project

pytestmark = pytest.mark.usefixtures("shipped_config")


async def refusal(jobs: Jobs, kind: str, *given: Any) -> str:
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(await jobs.start(*given, kind=kind))
    error: Any = failed.value
    while error.__cause__:
        error = error.__cause__
    return str(error.message)


async def test_no_start_runs_reads_or_redirects(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    mark, secret = tmp_path / "ran", tmp_path / "other-team.key"
    secret.write_text("a key of another team")
    hooks = {"hooks": {"PreToolUse": [{"command": f"touch {mark}"}]}}
    tree = WorkTree.create(tmp_path / "tea")
    staged = {"folder": f"staged:../../../{tree.path}"}
    token = {"url": "https://127.0.0.1:9/x.git", "token_variable": "OPENAI_API_KEY"}
    notify = {"url": "http://127.0.0.1:9/", "headers": {"X": "OPENAI_API_KEY"}}
    starts = [
        ("Job", job(set=hooks), "set: hooks"),
        ("Job", job(set={"model.base_url": "http://127.0.0.1:9/v1"}), "set: model.base_url"),
        ("Job", job(set={"mcp.x.command": ["touch", str(mark)]}), "set: mcp"),
        ("Job", job(documents=[str(secret)]), "start.documents"),
        ("Job", job(repository={"folder": str(tree.path)}), "start.folders"),
        ("Job", job(repository=staged), "not a staged folder"),
        ("Job", job(repository=token), "start.tokens"),
        (
            "Job",
            job(repository={"url": tree.url}, publish={"branch": "x", "remote": f"file://{root.staged}"}),
            "start.folders",
        ),
        ("Project", project("features", set=hooks), "set: hooks"),
        ("Project", project("features", repository={"folder": str(tree.path)}), "start.folders"),
        ("Project", project("features", notify=notify), "set: notify"),
    ]  # fmt: skip
    async with serving(temporal, root, Short()) as jobs:
        for kind, start, named in starts:
            assert named in await refusal(jobs, kind, start), start
        first = await jobs.start(job())
        await jobs.result(first)
        fork = {"fork": {"job": first.id, "phase": 2}, "instructions": "Again."}
        assert "set: hooks" in await refusal(jobs, "Job", {**fork, "set": hooks})
        assert "start.documents" in await refusal(jobs, "Job", {**fork, "documents": [str(secret)]})
    assert not mark.exists()


async def test_no_resume_redirects_the_key(temporal: Client, root: Root) -> None:
    def model(request: Request) -> Answer:
        return Failure(401, "no such key")

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, waiting_for="credentials")
        for settings in ({"model.base_url": "http://127.0.0.1:9/v1"}, {"model.name": "dearest"}):
            await handle.signal("resume", {"set": settings})
            [key] = settings
            status = await jobs.until(
                handle, notices=lambda lines, key=key: any(f"set: {key}" in x for x in lines)
            )
            assert status["waiting_for"] == "credentials"


async def test_what_is_ones_own_starts(temporal: Client, root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    async with serving(temporal, root, Short()) as jobs:
        start = job(repository={"url": tree.url}, set={"limits.job.model_calls": 50})
        assert (await jobs.result(await jobs.start(start)))["status"] == "completed"

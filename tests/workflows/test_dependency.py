"""Failures that the model cannot fix: the job waits for what it needs and is never rewound."""

from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import sandbox
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Short, close, job
from tests.workflows.test_stores import ADDING, LAW, stored
from tests.workflows.test_stores import START as REQUIREMENTS

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
confined = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
NOWHERE = "postgresql://127.0.0.1:1/db"
HANGS = {"name": "tests", "command": "test -e /usr/mended || sleep 60", "seconds": 1}


def with_commands(**settings: Any) -> dict[str, Any]:
    return job(set={"tools": ["files", "todos", "job", "shell"], **settings})


async def test_a_store_that_is_away_costs_no_rewind(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the model answers: here it completes the todo if the job cannot complete."""
    monkeypatch.setenv("LONGHAUL_STORE_URL", NOWHERE)
    model = Short({"Work": [*ADDING, DONE], "Close": [close("output/tea.md"), DONE]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(REQUIREMENTS)
        status = await jobs.until(handle, waiting_for="dependency")
        assert "127.0.0.1:1" in status["waiting"]["message"]
        assert "resume" in status["waiting"]["remedy"]
        assert (status["rewinds"], model.refusals) == (0, [])
        [page] = (jobs.folder(handle) / "errors").iterdir()
        written = page.read_text()
        assert "job_complete" in written
        assert "Tea was made." in written
        assert "127.0.0.1:1" in written
        monkeypatch.delenv("LONGHAUL_STORE_URL", raising=False)
        await handle.signal("resume", {})
        result = await jobs.result(handle)
        assert (result["status"], result["rewinds"]) == ("completed", 0)
        assert stored(root, handle.id) == [LAW]


async def test_a_store_that_comes_back_needs_no_person(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", NOWHERE)
    model = Short({"Work": [*ADDING, DONE], "Close": [close("output/tea.md")]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(REQUIREMENTS)
        await jobs.until(handle, waiting_for="dependency")
        monkeypatch.delenv("LONGHAUL_STORE_URL", raising=False)
        assert (await jobs.result(handle))["status"] == "completed"
        assert stored(root, handle.id) == [LAW]


async def test_what_the_model_can_mend_is_told_while_a_store_is_away(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", NOWHERE)
    wrong = [close("output/none.md")]
    finish = lambda view: [wrong.pop() if wrong else close("output/tea.md")]  # noqa: E731
    model = Short({"Work": [*ADDING, DONE], "Close": finish})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(REQUIREMENTS)
        await jobs.until(handle, waiting_for="dependency")
        [refusal] = model.refusals
        assert "output/none.md: does not exist" in refusal
        # The model could do nothing about it.
        assert "127.0.0.1" not in refusal
        await handle.terminate()


@confined
async def test_a_verifier_that_never_ends_costs_no_rewind(temporal: Client, root: Root) -> None:
    model = Short({"Close": [close("output/tea.md")]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(with_commands(verifiers=[HANGS]))
        status = await jobs.until(handle, waiting_for="dependency")
        assert "tests" in status["waiting"]["message"]
        assert "did not end within 1 s" in status["waiting"]["message"]
        assert f"bypass {handle.id} tests --reason" in status["waiting"]["remedy"]
        assert (status["rewinds"], status["phase"]["number"]) == (0, 2)
        # The work itself may be the cause, so the model is told before a person.
        assert status["guards"]["refused"] == {"tests": 3}
        page = next((jobs.folder(handle) / "errors").iterdir()).read_text()
        assert "todo_complete" in page
        assert "did not end within 1 s" in page
        await handle.signal("bypass", {"guard": "tests", "reason": "its server is slow"})
        await handle.signal("resume", {})
        # The next phase ends with the job and tries it again.
        status = await jobs.until(handle, waiting_for="dependency", phase=_third)
        assert status["rewinds"] == 0
        await handle.terminate()


def _third(phase: dict[str, Any]) -> bool:
    return bool(phase["number"] >= 3)


@confined
async def test_a_verifier_that_never_ends_is_not_gone_round(temporal: Client, root: Root) -> None:
    """The model completes the todo when the job cannot be completed."""
    model = Short({"Close": [close("output/tea.md"), DONE]})
    verifier = {**HANGS, "phases": []}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(with_commands(verifiers=[verifier]))
        status = await jobs.until(handle, status="waiting")
        assert status["waiting_for"] == "dependency"
        assert status["rewinds"] == 0
        await handle.terminate()


@confined
async def test_a_verifier_that_fails_is_the_models_to_mend(temporal: Client, root: Root) -> None:
    fails = {"name": "tests", "command": "echo red; exit 1"}
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(with_commands(verifiers=[fails], **{"limits.rewinds": 1}))
        status = await jobs.until(handle, status="waiting")
        assert status["waiting_for"] == "rewinds"
        await handle.terminate()


async def test_a_hook_that_fails_costs_no_rewind(temporal: Client, root: Root) -> None:
    broken = [{"command": "exit 7", "matcher": "append_file", "name": "scanner"}]
    again = lambda view: [("append_file", {"path": "notes/a.md", "content": "a"})]  # noqa: E731
    model = Short({"Work": again})
    settings = {"hooks": {"PreToolUse": broken}}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=settings))
        status = await jobs.until(handle, status="waiting")
        assert status["waiting_for"] == "dependency"
        assert "scanner" in status["waiting"]["message"]
        assert "exit code 7" in status["waiting"]["message"]
        assert status["rewinds"] == 0
        await handle.terminate()


async def test_errors_has_the_call_without_credentials_and_the_cause(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "bolt://127.0.0.1:1")
    query = 'MATCH (n {token: "AKIAIOSFODNN7EXAMPLE"}) RETURN n.colour'
    model = Short({"Work": [("execute_cypher_query", {"query": query})]})
    settings = {"tools": ["files", "todos", "job", "graph"], "limits.tools_offered": 60}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=settings))
        await jobs.until(handle, waiting_for="dependency")
        [page] = (jobs.folder(handle) / "errors").iterdir()
        written = page.read_text()
        await handle.terminate()
    assert "`execute_cypher_query` with" in written
    assert "n.colour" in written
    assert "AKIAIOSFODNN7EXAMPLE" not in written
    cause = written.partition("## The cause")[2]
    assert "Dependency: " in cause
    assert "DependencyUnavailable: " in cause

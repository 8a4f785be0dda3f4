"""A call that needs approval: the job waits, shows exactly what it would do, and is answered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from cli.app import main
from engine.development import DevelopmentServer
from rehearsal import Reply, call, rehearse
from rehearsal.wire import Answer, Request
from tests.ssh_keys import make_key
from tests.workflows.deviating import Deviating, enough
from tests.workflows.serving import Jobs, serving
from tests.workflows.tea import in_phase, page, tea

SETTINGS = {"approve": ["move_file"], "limits.clarifications": 0}
WRITE = ("write_file", {"path": "notes/a.md", "content": "A."})
MOVE = ("move_file", {"old": "notes/a.md", "new": "notes/b.md"})


def moving() -> Deviating:
    return Deviating({3: Reply(None, [WRITE, MOVE, ("list_files", {"path": "notes"})])})


async def waiting(jobs: Jobs, handle: Any) -> dict[str, Any]:
    status = await jobs.until(handle, waiting_for="approval")
    approval: dict[str, Any] = status["approval"]
    assert status["waiting"]["about"]["  new"] == "notes/b.md"
    assert approval["tool"] == "move_file"
    assert approval["arguments"] == MOVE[1]
    assert f"approve {handle.id} --id {approval['id']}" in status["waiting"]["remedy"]
    assert f"deny {handle.id} --id {approval['id']}" in status["waiting"]["remedy"]
    return approval


async def test_an_approved_call_is_carried_out_with_those_after_it(
    temporal: Client, root: Root
) -> None:
    model = moving()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(tea(set=SETTINGS))
        approval = await waiting(jobs, handle)
        assert not (jobs.folder(handle) / "notes/b.md").exists()
        await handle.signal("approve", {"id": "another"})
        await handle.signal("answer", {"text": "Yes."})
        await jobs.until(handle, notices=lambda told: len(told) == 2, waiting_for="approval")
        await handle.signal("approve", {"id": approval["id"], "reason": "Mind the name."})
        status = await enough(jobs, handle, 4)
    assert status["approval"] is None
    assert "no request for approval 'another' is open" in status["notices"][0]
    assert "no question is open" in status["notices"][1]
    moved, listed = model.results(4)[-2:]
    assert not moved.startswith("Error")
    assert "b.md" in listed
    assert "A person approved move_file: Mind the name." in model.told(4)


async def test_a_denied_call_is_answered_with_the_reason(temporal: Client, root: Root) -> None:
    model = moving()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(tea(set=SETTINGS))
        approval = await waiting(jobs, handle)
        await handle.signal("deny", {"id": approval["id"]})
        await jobs.until(handle, notices=lambda told: "reason: field required" in told[-1])
        await handle.signal("deny", {"reason": "Keep the name."})
        status = await enough(jobs, handle, 4)
    assert status["refusals"] >= 2
    refused, listed = model.results(4)[-2:]
    assert refused.startswith("Error: A person did not approve this call of move_file.")
    assert "Keep the name." in refused
    assert "b.md" not in listed


async def test_a_call_that_nobody_approves_in_time_is_answered_so(
    temporal: Client, root: Root
) -> None:
    model = moving()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(tea(set=SETTINGS | {"limits.approve_hours": 0.0005}))
        status = await enough(jobs, handle, 4)
    refused, listed = model.results(4)[-2:]
    assert refused.startswith("Error: Nobody approved this call of move_file in time")
    assert "b.md" not in listed
    assert status["waiting"] is None
    [record] = status["approvals"]
    assert (record["tool"], record["approved"], record["expired"]) == ("move_file", False, True)
    assert record["decided"] >= record["until"]
    assert any("nobody approved move_file" in line for line in status["notices"])


async def test_who_approved_what_and_when_stays_in_the_status(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, moving()) as jobs:
        handle = await jobs.start(tea(set=SETTINGS))
        approval = await waiting(jobs, handle)
        await handle.signal("approve", {"id": approval["id"], "by": "ada@kettle"})
        status = await enough(jobs, handle, 4)
    [record] = status["approvals"]
    assert (record["id"], record["by"], record["approved"]) == (approval["id"], "ada@kettle", True)
    assert record["arguments"] == MOVE[1]
    assert any(
        line.startswith(f"ada@kettle approved move_file ({approval['id']}) at ")
        for line in status["notices"]
    )


async def test_a_request_outlives_continue_as_new_and_edits_while_paused(
    temporal: Client, root: Root
) -> None:
    model = moving()
    async with serving(temporal, root, model) as jobs:
        settings = SETTINGS | {"limits.history_events": 100}
        first = await jobs.start(tea(set=settings))
        approval = await waiting(jobs, first)
        handle = jobs.client.get_workflow_handle(first.id, result_type=dict)
        run = (await handle.describe()).run_id
        while (await handle.describe()).run_id == run:
            await handle.signal("resume", {})
            await asyncio.sleep(0.02)
        assert await waiting(jobs, handle) == approval
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        (jobs.folder(handle) / "notes/mine.md").write_text("Mine.")
        await handle.signal("resume", {})
        assert await waiting(jobs, handle) == approval
        await handle.signal("approve", {})
        await enough(jobs, handle, 4)
    assert "b.md" in model.results(4)[-1]
    assert "mine.md" in model.results(4)[-1]


async def test_a_call_that_cannot_be_run_bothers_nobody(temporal: Client, root: Root) -> None:
    model = Deviating({3: call("move_file", old="notes/a.md")})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(tea(set=SETTINGS))
        status = await enough(jobs, handle, 4)
    assert status["waiting"] is None
    assert "new: Field required" in model.results(4)[-1]


async def test_a_rewind_drops_the_request_visibly(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, moving()) as jobs:
        handle = await jobs.start(tea(set=SETTINGS))
        approval = await waiting(jobs, handle)
        await handle.signal("rewind", {"issue": "Leave the names alone."})
        status = await jobs.until(handle, rewinds=1)
        await handle.signal("cancel", {})
    assert status["approval"] is None
    dropped = f"the request {approval['id']} to approve move_file was dropped"
    assert dropped in status["notices"]


async def test_approve_names_tools_that_exist(jobs: Jobs) -> None:
    handle = await jobs.start(tea(set={"approve": ["crystal_ball"]}))
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(handle)
    assert "approve: 'crystal_ball' is neither a tool" in str(failed.value.__cause__)


async def test_a_signed_approval_takes_the_signature_of_the_person_named(
    temporal: Client, running: DevelopmentServer, root: Root, tmp_path: Path
) -> None:
    """What is unsigned, forged or stale, and a bypass, are refused; the command line signs."""
    key = make_key(tmp_path / "key")
    public = key.with_suffix(".pub").read_text().strip()
    rule = {"tool": "move_file", "by": ["ada"], "not_starter": True}
    settings = SETTINGS | {"approve": [rule], "signers": {"ada": public}}
    model = moving()
    async with serving(temporal, root, model) as jobs:
        refused = await jobs.start(tea(set=settings))
        with pytest.raises(WorkflowFailureError) as failed:
            await refused.result()
        assert "needs to know who starts the job" in str(failed.value.cause)
        # The same id again, since nothing was created.
        handle = await jobs.start({**tea(set=settings), "by": "bob@host"}, job_id=refused.id)
        status = await jobs.until(handle, waiting_for="approval")
        assert "It takes the signature of ada." in status["waiting"]["message"]
        assert "--key ~/.ssh/id_ed25519` or `starter.py deny" in status["waiting"]["remedy"]
        assert "or the signal deny with" in status["waiting"]["remedy"]
        approval = status["approval"]
        forged = {"id": approval["id"], "by": "ada", "signature": "ada", "expires": "2099-01-01"}
        for payload in (
            {"id": approval["id"], "by": "ada"},
            forged,
            forged | {"expires": "2026-01-01T00:00:00Z"},
            forged | {"expires": "2099-01-01T00:00:00Z"},
        ):
            await handle.signal("approve", payload)
        await handle.signal("bypass", {"guard": "approve", "reason": "Let me."})
        status = await jobs.until(handle, notices=lambda told: len(told) == 5)
        assert status["waiting_for"] == "approval"
        for told, expected in zip(
            status["notices"],
            ("takes the signature of ada", "no time zone", "was good until 2026", "not in the form",
             "has refused nothing"),
            strict=True,
        ):  # fmt: skip
            assert expected in told
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LONGHAUL_WORKSPACES", str(root.path))
            patch.setenv("TEMPORAL_ADDRESS", running.address)
            command = ["approve", handle.id, "--key", str(key)]
            assert await asyncio.to_thread(main, command) == 0
        status = await enough(jobs, handle, 4)
    [record] = status["approvals"]
    assert (record["by"], record["approved"]) == ("ada", True)
    assert any(line.startswith("ada approved move_file (") for line in status["notices"])
    assert not model.results(4)[-2].startswith("Error")


async def test_an_approved_plan_approves_no_call(temporal: Client, root: Root) -> None:
    """Nor does an answer that comes twice: the call is a question of its own."""

    def in_one_reply(request: Request) -> Answer:
        answer = rehearse(request)
        if any(name == "todo_write" for name, _ in answer.calls):
            answer.calls.append(("todo_complete", {"notes": "Handed over."}))
        return answer

    async with serving(temporal, root, in_one_reply) as jobs:
        handle = await jobs.start(page(approve_plan=True, set={"approve": ["todo_complete"]}))
        status = await jobs.until(handle, waiting_for="approval")
        await handle.signal("approve", {"id": status["approval"]["id"]})
        status = await jobs.until(handle, approval=lambda asked: asked and asked["tool"] == "plan")
        for _ in range(2):
            await handle.signal("approve", {"id": status["approval"]["id"]})
        status = await jobs.until(
            handle,
            notices=lambda told: "no request" in told[-1],
            approval=lambda asked: asked and asked["tool"] == "todo_complete",
        )
        assert (status["waiting_for"], status["phase"]["number"]) == ("approval", 1)
        await handle.signal("approve", {})
        await jobs.until(handle, phase=in_phase(2))
        await handle.signal("cancel", {})

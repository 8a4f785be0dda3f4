"""A rewind to a phase: what it restores, what it leaves, and what cannot be undone."""

import asyncio
from typing import Any

import pytest
import yaml
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError

from activities.checkpoints import Root
from rehearsal import Hang
from rehearsal.wire import Answer, Request
from tests.workflows.holding import transition_held
from tests.workflows.queries import query_status
from tests.workflows.resting import at_todo
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Short, hand_over, job
from tests.workflows.tea import in_phase, start_of

START = job(items=["green tea"])
SHORT = Short({"Hand": [hand_over({"items": ["S1"]}, {}), DONE]})


def is_tactical(request: Request) -> bool:
    return "# Tactical phase" in str(request["messages"][0]["content"])


BETWEEN = at_todo(phase=2, number=2, model=SHORT)
"""Rests in the first tactical phase, after the todo that covers the item is done."""


async def paused_with_the_item_covered(jobs: Jobs) -> tuple[Any, dict[str, Any]]:
    """Return a job of that model, paused there."""
    handle = await jobs.start(START)
    await jobs.until(handle, scope=lambda scope: scope["completed"] == 1)
    await handle.signal("pause", {})
    return handle, await jobs.until(handle, waiting_for="paused")


async def test_scope_and_files_go_back_the_failure_note_stays(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, BETWEEN) as jobs:
        handle, paused = await paused_with_the_item_covered(jobs)
        await handle.signal("tell", {"text": "Use a pot.", "item": True, "by": "bob@desk"})
        await jobs.until(handle, remarks=lambda remarks: len(remarks) == 1)
        await handle.signal("rewind", {"issue": "Too dry.", "phase": 2, "by": "ada@host"})
        status = await jobs.until(handle, rewinds=1)
        start = jobs.snapshot(handle, start_of(status, 3))
        base = jobs.snapshot(handle, paused["checkpoints"][1]["id"])
        # What a person added since is still owed.
        lines = [item.line for item in start.state.scope if not item.is_step]
        assert lines == ["S1 (open): green tea", "A1 (open): Use a pot."]
        assert status["scope"]["open"] == 2
        assert start.files.entry("output/tea.md") is None
        assert start.read_text("plan.md") == base.read_text("plan.md")
        # The page of this phase, not the list it started with.
        archived = yaml.safe_load(start.read_text("archive/phase_002.yaml"))
        assert (archived["issue"], archived["outcome"], archived["undone"]) == (
            "Too dry.",
            "rewound",
            True,
        )
        assert archived["todos"][0]["status"] == "completed"
        assert archived["by"] == "ada@host"
        assert archived["remarks"] == [{"by": "bob@desk", "text": "Use a pot."}]
        page = start.read_text("archive/phase_002.md")
        assert "## Issue, from ada@host\n\nToo dry." in page
        assert "- bob@desk: Use a pot." in page
        assert "Undone" in start.read_text("archive/phase_002.md")
        first = str(start.conversation.messages()[1]["content"])
        assert "Too dry." in first
        # The model, too, reads that the todos which the page shows as completed are undone.
        assert "> Undone by a later rewind." in first
        # Usage is not given back, and no step is counted twice.
        assert status["usage"]["model_calls"] >= paused["usage"]["model_calls"] > 0
        assert status["usage"]["prompt_tokens"] >= paused["usage"]["prompt_tokens"] > 0
        assert status["step"] >= paused["step"]
        await handle.signal("cancel", {})


async def test_scope_goes_back_also_where_files_stay(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, BETWEEN) as jobs:
        handle, paused = await paused_with_the_item_covered(jobs)
        await handle.signal("rewind", {"issue": "Again.", "phase": 2, "restore_files": False})
        status = await jobs.until(handle, rewinds=1)
        start = jobs.snapshot(handle, start_of(status, 3))
        before = jobs.snapshot(handle, paused["checkpoint"])
        assert [item.status for item in before.state.scope if not item.is_step] == ["completed"]
        assert [item.status for item in start.state.scope if not item.is_step] == ["open"]
        output_paths = [entry.path for entry in before.files.walk("output")]
        assert output_paths
        assert [entry.path for entry in start.files.walk("output")] == output_paths
        assert "undone" not in yaml.safe_load(start.read_text("archive/phase_002.yaml"))
        await handle.signal("cancel", {})


class Hanging:
    """Never answers in tactical phases."""

    def __call__(self, request: Request) -> Answer:
        return Hang() if is_tactical(request) else SHORT(request)


async def test_the_step_in_flight_is_given_up_and_a_rewind_for_a_cancel(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Hanging()) as jobs:
        handle = await jobs.start(START)
        status = await jobs.until(handle, phase=in_phase(2))
        outside = root.path / "outside.txt"
        outside.write_text("not the job's")
        await asyncio.sleep(0.3)
        await handle.signal("rewind", {"issue": "It hangs.", "phase": 2})
        async with asyncio.timeout(30):
            await jobs.until(handle, phase=in_phase(3))
        after = await query_status(handle)
        turned = jobs.snapshot(handle, start_of(after, 3))
        [_, before] = turned.checkpoints.log(turned.commit, 2)
        assert before.id == status["checkpoints"][1]["id"]
        assert outside.read_text() == "not the job's"
        with transition_held() as gate:
            await handle.signal("rewind", {"issue": "It still hangs."})
            await gate.until_begun()
            await handle.signal("cancel", {"reason": "Enough."})
            with pytest.raises(WorkflowFailureError) as ended:
                await jobs.result(handle, 20)
            gate.go.set()
        assert isinstance(ended.value.cause, CancelledError)
        assert (await query_status(handle))["rewinds"] == 1


async def test_resume_grants_a_rewind_also_after_those_of_a_person(
    temporal: Client, root: Root
) -> None:
    panic = ("todo_rewind", {"issue": "This cannot work."})
    async with serving(temporal, root, Short({"Work": [panic]})) as jobs:
        handle = await jobs.start(job(items=["green tea"], set={"limits.rewinds": 0}))
        await jobs.until(handle, waiting_for="rewinds")
        await handle.signal("rewind", {"issue": "Think again."})
        await jobs.until(handle, rewinds=1, waiting_for="rewinds")
        await handle.signal("resume", {})
        await jobs.until(handle, rewinds=2)
        await handle.signal("cancel", {})


async def edited_while_paused(jobs: Jobs) -> Any:
    handle, _ = await paused_with_the_item_covered(jobs)
    folder = jobs.folder(handle)
    (folder / "output" / "mine.md").write_text("by a person")
    (folder / "plan.md").write_text((folder / "plan.md").read_text() + "\nA person adds this.\n")
    return handle


async def test_a_second_pause_leaves_what_was_edited_since_the_first(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, BETWEEN) as jobs:
        handle = await edited_while_paused(jobs)
        before = (await query_status(handle))["refusals"]
        await handle.signal("pause", {})
        status = await jobs.until(handle, refusals=before + 1)
        assert status["notices"][-1] == "refused: signal pause: the job is paused already"
        assert (jobs.folder(handle) / "output" / "mine.md").read_text() == "by a person"
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for=None)
        snapshot = jobs.snapshot(handle, status["checkpoint"])
        assert snapshot.read_bytes("output/mine.md") == b"by a person"
        assert "A person adds this." in snapshot.read_text("plan.md")
        await handle.signal("cancel", {})


async def test_a_rewind_of_a_paused_job_takes_in_what_was_edited(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, BETWEEN) as jobs:
        handle = await edited_while_paused(jobs)
        await handle.signal("rewind", {"issue": "See what I added to plan.md."})
        status = await jobs.until(handle, rewinds=1)
        start = jobs.snapshot(handle, start_of(status, 3))
        assert start.read_bytes("output/mine.md") == b"by a person"
        assert "A person adds this." in str(start.conversation.messages()[1]["content"])
        await handle.signal("cancel", {})

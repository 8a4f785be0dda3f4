"""A person's message to an agent at work: it arrives with the next turn and is never lost."""

import asyncio
from typing import Any

from temporalio.client import Client

from activities.checkpoints import Root
from activities.job.remarks import instructions_with_remarks
from protocol.job_state import Remark
from rehearsal import Request
from tests.workflows.resting import at_todo
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Short, hand_over, job
from tests.workflows.team import Team, project, write

SAID = "Use oolong, not sencha."
LINE = "From Ada in phase 2: Use oolong, not sencha."


def told(request: Request) -> str:
    return str(request["messages"][-1]["content"])


class Listening:
    """Rests at the first todo of phase 2, and records its requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._model = at_todo(phase=2, number=1, model=Short({"Hand": [hand_over({}, {}), DONE]}))

    def __call__(self, request: Request) -> Any:
        if request.get("tools"):
            self.requests.append(request)
        return self._model(request)


async def at_work(jobs: Jobs, **details: Any) -> Any:
    handle = await jobs.start(job(**details))
    await jobs.until(handle, waits_until=bool)
    return handle


async def test_it_is_in_the_next_turn_and_in_force_until_the_end(
    temporal: Client, root: Root
) -> None:
    model = Listening()
    async with serving(temporal, root, model) as jobs:
        handle = await at_work(jobs)
        await handle.signal("tell", {"text": SAID, "by": "Ada", "item": True})
        status = await jobs.until(handle, remarks=[LINE])
        assert status["scope"]["added"] == 1
        assert status["correction"].startswith(f"A person says: {SAID} It is item A1 of the scope:")
        assert any("Ada told the agent" in notice for notice in status["notices"])
        await handle.signal("rewind", {"issue": "Again.", "phase": 1})
        status = await jobs.until(handle, rewinds=1)
        start = jobs.snapshot(handle, status["checkpoints"][-1]["id"])
        # The rewind restored the files, but kept the message.
        assert start.read_text("instructions.md").endswith(f"\n## Amended\n\n- {LINE}\n")
        assert [remark.line for remark in start.state.remarks] == [LINE]
        await handle.signal("cancel", {})
    number = next(n for n, request in enumerate(model.requests) if LINE in told(request))
    assert all(LINE in told(request) for request in model.requests[number:])


async def test_what_is_said_in_a_pause_is_kept_beside_what_a_person_edits(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Listening()) as jobs:
        handle = await at_work(jobs)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        await handle.signal("tell", {"text": SAID, "by": "Ada"})
        await jobs.until(handle, remarks=[LINE])
        path = jobs.folder(handle) / "instructions.md"
        path.write_text("Make tea for two.\n")
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for=None)
        text = jobs.snapshot(handle, status["checkpoint"]).read_text("instructions.md")
        assert text == f"Make tea for two.\n\n## Amended\n\n- {LINE}\n"
        await handle.signal("cancel", {})


async def test_the_next_turn_says_what_a_person_edited_in_a_pause(
    temporal: Client, root: Root
) -> None:
    model = Listening()
    async with serving(temporal, root, model) as jobs:
        handle = await at_work(jobs)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        folder = jobs.folder(handle)
        instructions = folder / "instructions.md"
        instructions.write_text(f"{instructions.read_text()}\nWrite output/oolong.md as well.\n")
        (folder / "mine.bin").write_bytes(b"\0" * 10)
        (folder / "long.md").write_text("a line\n" * 10_000)
        await handle.signal("resume", {})
        await jobs.until(handle, waiting_for=None)
        # The agent is still in its wait and has read none of it.
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        (folder / "second.md").write_text("Of a second pause.\n")
        # This ends the wait too, which resume leaves running; no file is restored.
        await handle.signal("rewind", {"issue": "See what I added."})
        await jobs.until(handle, rewinds=1, step=lambda step: step > 2)
        await handle.signal("cancel", {})
    heard = [told(request) for request in model.requests if "A person edited" in told(request)]
    assert len(heard) == 1
    assert "instructions.md, long.md (new), mine.bin (new)" in heard[0]
    assert "The instructions are in force as they are now." in heard[0]
    assert "\n+Write output/oolong.md as well.\n" in heard[0]
    assert "\n… and more; read the files.\n" in heard[0]
    assert heard[0].endswith("\n+Of a second pause.")
    assert len(heard[0]) < 9_000


async def test_many_at_a_continue_as_new_are_each_heard_once_and_in_order(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Listening()) as jobs:
        first = await at_work(jobs, set={"limits.history_events": 100})
        handle: Any = temporal.get_workflow_handle(first.id, result_type=dict)
        for number in range(50):
            await handle.signal("tell", {"text": f"Remark {number}."})
            await asyncio.sleep(0.1)
        status = await jobs.until(
            handle, remarks=lambda lines: bool(lines) and lines[-1].endswith("Remark 49.")
        )
        state = jobs.snapshot(handle, status["checkpoint"]).state
        assert (await handle.describe()).run_id != first.first_execution_run_id
        await handle.signal("cancel", {})
    assert [remark.text for remark in state.remarks] == [f"Remark {n}." for n in range(50)]


async def test_a_project_tells_who_is_at_work_and_who_begins_later(
    temporal: Client, root: Root
) -> None:
    ask = ("request_clarification", {"question": "Which?", "default": "Any."})
    team = Team(
        {
            "Draft it": lambda asked: [ask, write("repo/menu.md", "tea\n")],
            "Check it": lambda asked: [write("repo/checked.md", "tea\n")],
        }
    )
    stages = [{"agent": "generalist", "task": f"{verb} it."} for verb in ("Draft", "Check")]
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(project("pipeline", stages=stages), kind="Project")
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("tell", {"text": SAID, "by": "Ada"})
        first = temporal.get_workflow_handle(f"{handle.id}.stage-1-generalist-1")
        await jobs.until(first, remarks=[LINE])
        await handle.signal("answer", {"text": "Any."})
        assert (await jobs.result(handle))["status"] == "completed"
    [_, second] = team.asked
    assert f"From Ada: {SAID}" in second


def test_the_instructions_hold_each_remark_once() -> None:
    remarks = [Remark(text="One.\nTwo.", by="Ada", phase=1), Remark(text="Three.")]
    once = instructions_with_remarks("# Tea\n\nMake it.\n", remarks)
    assert once == (
        "# Tea\n\nMake it.\n\n## Amended\n\n- From Ada in phase 1: One.\n  Two.\n"
        "- From a person: Three.\n"
    )
    assert instructions_with_remarks(once, remarks) == once
    for text in ("One.", "On"):
        beginning = Remark(text=text, by="Ada", phase=1)
        assert instructions_with_remarks(once, [beginning]) == f"{once}\n- {beginning.line}\n"
    more = instructions_with_remarks(once, [*remarks, Remark(text="Four.")])
    assert more == f"{once}\n- From a person: Four.\n"

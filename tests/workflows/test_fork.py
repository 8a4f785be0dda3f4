"""A new job from the start of a phase of another job, which stays unchanged."""

import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root, diff_files, open_checkpoints
from rehearsal import rehearse
from rehearsal.request_view import RequestView
from tests.workflows.holding import gate_held, paused_at_gate
from tests.workflows.queries import query_status
from tests.workflows.resting import at_todo
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Call, Short, hand_over, job
from tests.workflows.tea import in_phase, page, start_of

TEA = job(items=["green tea"], set={"todos.fork": ['Rethink what "Amended" changes', "Hand over"]})


def cover(view: RequestView) -> Sequence[Call]:
    """Hand over a todo for all that is open."""
    return [DONE] if view.calls else [hand_over({"items": list(view.open_items)})]


def work(view: RequestView) -> Sequence[Call]:
    """Write what no earlier phase wrote: a file that stays as it is shows no work."""
    return [("write_file", {"path": "output/tea.md", "content": f"tea {view.number}"}), DONE]


SHORT = Short({"Hand": cover, "Work": work})


def fork_of(job: str, phase: int, **more: Any) -> dict[str, Any]:
    return {"fork": {"job": job, "phase": phase}, **more}


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def refused(jobs: Jobs, start: dict[str, Any]) -> str:
    handle = await jobs.start(start)
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(handle)
    assert getattr(failed.value.cause, "type", "") == "BadStart"
    return str(failed.value.cause)


@pytest.fixture
async def jobs(temporal: Client, root: Root) -> AsyncIterator[Jobs]:
    async with serving(temporal, root, SHORT) as served:
        yield served


async def standing(jobs: Jobs) -> Any:
    """Return a job that is paused as its phase 3 begins."""
    handle, status = await paused_at_gate(jobs, TEA)
    assert status["phase"]["number"] == 3
    return handle


async def test_a_fork_leaves_the_first_and_outlives_it_and_two_alike_end_in_the_same_tree(
    jobs: Jobs,
) -> None:
    undisturbed = await jobs.result(await jobs.start(TEA))
    first = await standing(jobs)
    paused = await query_status(first)
    store = jobs.root.repository(first.id)
    before = content(jobs.folder(first)), content(store)

    forked = fork_of(first.id, 2, instructions="Cover white tea as well.", items=["white tea"])
    fork = await jobs.start(forked)
    result = await jobs.result(fork)
    assert result["status"] == "completed"
    assert (content(jobs.folder(first)), content(store)) == before
    await first.signal("resume", {})
    assert (await jobs.result(first))["tree"] == undisturbed["tree"]

    status = await query_status(fork)
    start = jobs.snapshot(fork, status["checkpoints"][0]["id"])
    base = jobs.snapshot(fork, paused["checkpoints"][1]["id"])
    # The first job's files at that point, with the amended instructions and no other real change.
    changed = {change.path for change in diff_files(base.files, start.files)}
    assert changed == {
        "archive/phase_002.md",
        "archive/phase_002.yaml",
        "instructions.md",
        "workspace_summary.md",
    }
    assert start.read_text("instructions.md").startswith(base.read_text("instructions.md").rstrip())
    assert start.read_text("instructions.md").endswith(
        "\n\n## Amended\n\nCover white tea as well.\n"
    )
    assert (start.state.phase.number, start.state.phase.purpose) == (3, "fork")
    assert "Amended" in start.state.phase.todos[0].content
    assert '"Amended"' in start.conversation.messages()[1]["content"]
    assert [(item.id, item.text) for item in start.state.scope if not item.is_step] == [
        ("S1", "green tea"),
        ("S2", "white tea"),
    ]
    listed = yaml.safe_load(start.read_text("archive/phase_002.yaml"))
    assert listed["outcome"] == "forked"
    assert {todo["status"] for todo in listed["todos"]} == {"pending"}
    # Its own usage, and one history.
    assert result["rewinds"] == 0
    assert status["usage"]["model_calls"] == status["step"] - start.state.step
    story = [entry.message for entry in start.checkpoints.log(start.commit, 10_000)]
    assert story[0].startswith(f"forked from {first.id} at the start of phase 2 · phase 3 begins")
    assert story[-1].startswith("phase 1 begins")

    # A second fork of the closed job, which is deleted before the fork is complete.
    base_id = paused["checkpoints"][1]["id"]
    with gate_held("todo_complete") as gate:
        fork = await jobs.start(forked)
        await gate.until_begun()
        shutil.rmtree(store)
        shutil.rmtree(jobs.folder(first))
        gate.go.set()
        again = await jobs.result(fork)
    assert (again["status"], again["tree"]) == ("completed", result["tree"])
    assert open_checkpoints(jobs.root, fork.id).is_intact(base_id)
    # Its history can be read by phase as well.
    assert open_checkpoints(jobs.root, fork.id).tags()["phase/0002"] == base_id


async def test_fork_of_a_fork_and_rewind_within_it(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, at_todo(phase=5, number=1, model=SHORT)) as jobs:
        first = await standing(jobs)
        second = await jobs.start(fork_of(first.id, 2, instructions="Cover white tea."))
        await jobs.until(second, phase=in_phase(4))
        third = await jobs.start(fork_of(second.id, 3, instructions="Cover black tea."))
        await jobs.until(third, waits_until=bool)
        await third.signal("rewind", {"issue": "Before the fork.", "phase": 2})
        status = await jobs.until(third, refusals=1)
        assert "there is no phase 2; the phases are 4 to 5" in status["notices"][0]
        await third.signal("rewind", {"issue": "To its beginning.", "phase": 4})
        status = await jobs.until(third, rewinds=1)
        instructions = jobs.snapshot(third, status["checkpoint"]).read_text("instructions.md")
        assert instructions.index("Cover white tea.") < instructions.index("Cover black tea.")
        # Phase 6 plans again and hands over to the next.
        await jobs.until(third, phase=in_phase(7))
        await first.signal("cancel", {})


async def test_fork_from_the_first_phase_plans_anew_with_what_is_set_now(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, rehearse) as jobs:
        first = await jobs.start(page(set={"limits.rewinds": 1, "limits.max_todos": 30}))
        await jobs.until(first, phase=in_phase(1))
        fork = await jobs.start(
            fork_of(first.id, 1, instructions="- Cover oolong.", set={"limits.rewinds": 3})
        )
        await first.signal("cancel", {})
        status = await jobs.until(fork, phase=in_phase(3))
        await fork.signal("cancel", {})
        first_start, start = [jobs.snapshot(fork, start_of(status, phase)) for phase in (2, 3)]
        assert (first_start.state.phase.number, first_start.state.phase.purpose) == (2, "bootstrap")
        assert "oolong" in start.read_text("plan.md")
        # Otherwise the pinned configuration is unchanged.
        limits = start.config.limits
        assert (limits.rewinds, limits.max_todos) == (3, 30)


async def test_what_cannot_be_forked_says_what_there_is(
    jobs: Jobs, temporal: Client, tmp_path: Path
) -> None:
    first = await standing(jobs)
    unknown = await refused(jobs, fork_of("nobody", 1))
    assert "no job 'nobody'" in unknown
    assert first.id in unknown
    # Left over from a future that Temporal's reset undid.
    store = open_checkpoints(jobs.root, first.id)
    store.tag("phase/0007", store.tags()["phase/0003"])
    assert "its phases: 1, 2, 3" in await refused(jobs, fork_of(first.id, 7))
    assert "agent generalist" in await refused(jobs, fork_of(first.id, 1, agent="creator"))
    assert "limits.nothing" in await refused(jobs, fork_of(first.id, 1, set={"limits.nothing": 1}))
    for nonsense in ({"job": first.id}, {"job": "", "phase": 1}, {"job": "a", "phase": 0}, "a"):
        assert "fork" in await refused(jobs, {"fork": nonsense})
    assert "agent" in await refused(jobs, {"instructions": "Cover tea."})
    other = Root.open(tmp_path / "other", create=True)
    async with serving(temporal, other, SHORT) as elsewhere:
        message = await refused(elsewhere, fork_of(first.id, 1))
    assert other.id in message
    assert jobs.queue in message
    await first.signal("cancel", {})


async def test_a_fork_from_the_end_goes_on_from_what_was_delivered(jobs: Jobs) -> None:
    first = await jobs.start(TEA)
    ended = await jobs.result(first)
    start = {"fork": {"job": first.id}, "instructions": "White tea as well.", "items": ["white"]}
    fork = await jobs.start(start)
    result = await jobs.result(fork)
    assert (result["status"], result["phases"] > ended["phases"]) == ("completed", True)
    status = await query_status(fork)
    begun = jobs.snapshot(fork, start_of(status, ended["phases"] + 1))
    assert begun.read_text("output/tea.md") == "tea 2"
    # The page is that of the phase that ended the first job, whose result the fork does not get.
    assert (
        yaml.safe_load(begun.read_text(f"archive/phase_{ended['phases']:03d}.yaml"))["outcome"]
        == "closed"
    )
    assert begun.files.entry("output/completion.json") is None
    assert [item["text"] for item in status["items"]] == ["green tea", "white"]


async def test_a_job_at_work_has_no_end_to_fork_from(jobs: Jobs) -> None:
    first = await standing(jobs)
    message = await refused(jobs, {"fork": {"job": first.id}})
    assert f"job '{first.id}' has not ended; name a phase" in message
    assert "of which it has: 1, 2, 3" in message


LIST = {
    "todos.work": ["Work on the tea.", "Work on the cup."],
    "todos.fork": ["Rethink", "Hand over"],
}


@pytest.mark.parametrize(("phase", "done"), [(1, 0), (2, 3)])
async def test_a_fork_of_an_agent_with_a_list_of_its_own_plans_and_counts_nothing_twice(
    jobs: Jobs, phase: int, done: int
) -> None:
    first = await jobs.start(job(items=["tea"], set=LIST))
    assert (await jobs.result(first))["status"] == "completed"
    fork = await jobs.start(fork_of(first.id, phase, instructions="With milk.", items=["milk"]))
    result = await jobs.result(fork)
    status = await query_status(fork)
    begun = jobs.snapshot(fork, start_of(status, phase + 1))
    assert (begun.state.phase.kind, begun.state.phase.purpose) == ("strategic", "fork")
    assert [(item.id, item.text) for item in begun.state.scope] == [
        ("S1", "tea"),
        ("P1", "Work on the tea."),
        ("P2", "Work on the cup."),
        ("S2", "milk"),
    ]
    assert sum(item.status == "completed" for item in begun.state.scope) == done
    assert (result["status"], status["scope"]["open"]) == ("completed", 0)
    assert (status["scope"]["original"], status["scope"]["steps"]) == (2, 2)


async def test_a_fork_with_another_list_begins_with_it(jobs: Jobs) -> None:
    first = await jobs.start(job(set=LIST))
    await jobs.result(first)
    other = {"todos.work": ["Work on coffee."]}
    fork = await jobs.start(fork_of(first.id, 1, set=other))
    await jobs.result(fork)
    status = await query_status(fork)
    begun = jobs.snapshot(fork, start_of(status, 2))
    assert (begun.state.phase.kind, begun.state.phase.todos[0].content) == (
        "tactical",
        "Work on coffee.",
    )
    assert [item.line for item in begun.state.scope] == [
        "B1 (open): Make tea.",
        "P1 (open): Work on coffee.",
    ]

"""The scope ledger in a job: where items come from, what closes them, what ends the job."""

from collections.abc import Callable, Sequence
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from activities.stores.stored_traces import read_job_traces
from rehearsal.request_view import RequestView
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Call, Short, close, hand_over, job, plan


def statuses(status: dict[str, Any]) -> dict[str, str]:
    return {item["id"]: item["status"] for item in status["items"]}


async def ledger(jobs: Jobs, handle: WorkflowHandle[Any, Any]) -> dict[str, str]:
    """Return the items with their status, which is the same in the workflow and its checkpoint."""
    status = await query_status(handle)
    snapshot = jobs.snapshot(handle, status["checkpoint"])
    kept = {item.id: item.status for item in snapshot.state.scope}
    assert kept == statuses(status) | {step["id"]: step["status"] for step in status["steps"]}
    return statuses(status)


def work(view: RequestView) -> Sequence[Call]:
    """Do each todo with a file of its own."""
    number = view.current_todo.id if view.current_todo else 0
    return [("write_file", {"path": f"output/{view.number}_{number}.md", "content": "tea"}), DONE]


async def test_items_of_the_start_are_completed_by_the_todos_that_name_them(
    temporal: Client, root: Root
) -> None:
    todos = hand_over({"items": ["S2"]}, {"items": ["S1", "S2"]}, {"items": ["S3"]})
    model = Short(
        {"Hand": [todos, DONE], "Work": work, "Close": [close("output/none.md"), close("output")]}
    )
    async with serving(temporal, root, model) as jobs:
        # When items were given, a heading in the instructions is not taken as scope.
        text = "# Tea\n\n## Scope\n\n- saucers\n"
        items = ["black tea", "green tea", "cups"]
        handle = await jobs.start(job(items=items, instructions=text))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert await ledger(jobs, handle) == dict.fromkeys(["S1", "S2", "S3"], "completed")
        [missing] = model.refusals
        assert "output/none.md: does not exist" in missing


async def test_items_of_the_scope_heading_are_covered_in_order_and_people_are_told(
    temporal: Client, root: Root
) -> None:
    whole = [plan("[ ] S1-S3"), hand_over({}, {"items": ["S2"]}, {}), DONE]
    model = Short({"Plan": whole, "Work": work, "Mark": [close("output")]})
    async with serving(temporal, root, model) as jobs:
        text = "# Tea\n\n## Scope\n\n- black tea\n- green tea\n- cups\n\n## Else\n\n- no item\n"
        handle = await jobs.start(job(instructions=text))
        assert (await jobs.result(handle))["status"] == "completed"
        assert await ledger(jobs, handle) == dict.fromkeys(["S1", "S2", "S3"], "completed")
        notices = (await query_status(handle))["notices"]
        assert "todo 1 names no scope item; it counts for S1" in notices
        # The last todo ends the list, which stands for what is left of its phase.
        assert len(notices) == 1
        noted = [
            row.what_happened for row in read_job_traces(root, handle.id) if row.guard == "scope"
        ]
        assert noted == notices


def giving_up(*attempts: Call) -> Callable[[RequestView], Sequence[Call]]:
    """Claim completion in turn; after the last refusal, call todo_rewind."""
    return lambda view: [[*attempts, ("todo_rewind", {"issue": "No brewing."})][len(view.calls)]]


async def test_a_box_that_vanishes_leaves_its_step_open_until_a_rewind_was_tried(
    temporal: Client, root: Root
) -> None:
    unresolved = ["P3: there is no pot to brew in"]
    two = "# Plan\n\n## Phase 1: Tea\n- [ ] Boil\n\n## Phase 2: Cups\n- [ ] Fill\n- [ ] Stir\n"
    both = [("write_file", {"path": "plan.md", "content": two}), hand_over({}), DONE]
    model = Short(
        {
            "Plan": both,
            # All of the second phase goes, and what is left is ticked by the model.
            "Mark": [plan("[x] Boil"), DONE],
            "Close": giving_up(close("output/tea.md"), close("output", unresolved=unresolved)),
            "Rethink": [
                ("drop_item", {"ids": ["P2"], "reason": "There is one cup, and it is full."}),
                close("output", unresolved=["P3"]),
                close("output", unresolved=unresolved),
            ],
        }
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        status = await query_status(handle)
    assert result["status"] == "completed"
    assert result["unresolved"] == unresolved
    assert result["rewinds"] == 1
    steps = {step["id"]: step["status"] for step in status["steps"]}
    assert steps == {"P1": "completed", "P2": "dropped", "P3": "open"}
    plain, too_early, without_reason = model.refusals
    for refusal in (plain, too_early):
        assert "no longer in plan.md are open: P2 Fill; P3 Stir" in refusal
        assert "todo_rewind" in refusal
    assert "with its id and the reason in some words: P3" in without_reason


async def test_items_are_added_and_dropped_in_strategic_phases(
    temporal: Client, root: Root
) -> None:
    def mark(view: RequestView) -> Sequence[Call]:
        if view.number > 3:
            return [plan("[x] Boil", "[x] Brew"), DONE]
        return [
            ("add_item", {"text": "cups"}),
            ("add_item", {"text": "spoons"}),
            ("drop_item", {"ids": ["A2"], "reason": "Nobody takes sugar."}),
            hand_over({"items": ["A1"]}),
        ] * (not view.calls) or [DONE]

    def smuggle(view: RequestView) -> Sequence[Call]:
        return [("add_item", {"text": "smuggled"}), *work(view)] if not view.calls else [DONE]

    async with serving(
        temporal, root, Short({"Mark": mark, "Work": smuggle, "Close": [close("output")]})
    ) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        assert result["dropped"] == ["A2: spoons. Reason: Nobody takes sugar."]
        status = await query_status(handle)
        assert status["scope"] == {
            "original": 1,
            "completed": 1,
            "added": 2,
            "dropped": 1,
            "open": 0,
            "steps": 2,
            "steps_completed": 2,
        }
        await ledger(jobs, handle)


async def test_a_rewind_to_a_phase_restores_its_ledger_with_or_without_files(
    temporal: Client, root: Root
) -> None:
    model = Short({"Hand": [hand_over({"items": ["S1"]}), DONE]})
    async with serving(temporal, root, model) as jobs:
        # Two lists, so that the job stops in a phase with a completed item.
        handle = await jobs.start(
            job(
                items=["tea"],
                set={"limits.phase.model_calls": 5, "todos.transition": ["Work"] * 9},
            )
        )
        await jobs.until(handle, waiting_for="budget")
        assert await ledger(jobs, handle) == {"S1": "completed"}
        for rewinds, with_files in ((1, False), (2, True)):
            back = {"issue": "Back.", "phase": 1, "restore_files": with_files}
            await handle.signal("rewind", back)
            status = await jobs.until(handle, rewinds=rewinds)
            starts = [jobs.snapshot(handle, entry["id"]) for entry in status["checkpoints"]]
            *_, begun = [start for start in starts if start.state.phase.purpose == "rewind"]
            assert [item.status for item in begun.state.scope if not item.is_step] == ["open"]
        await handle.signal("cancel", {})


async def test_a_todo_is_done_when_what_it_names_is_there(temporal: Client, root: Root) -> None:
    first = {"done_when": {"file_exists": "output/*.md"}}
    last = {"done_when": {"matches": {"path": "output/tea.md", "pattern": "^hot"}}}

    def work(view: RequestView) -> Sequence[Call]:
        text = "hot tea" if view.current_todo and view.current_todo.id == 2 else "tea"
        if "Not done yet" in view.refusal and not view.calls:
            return [("write_file", {"path": "output/tea.md", "content": text})]
        return [DONE]

    model = Short({"Hand": [hand_over(first, last), DONE], "Work": work})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        assert (await jobs.result(handle))["status"] == "completed"
        assert (jobs.folder(handle) / "output/tea.md").read_text() == "hot tea"
        # The tool refuses the first; the gate refuses the last, which would end the phase.
        assert (await query_status(handle))["refusals"] == 2


async def test_a_job_that_has_planned_nothing_does_not_end(temporal: Client, root: Root) -> None:
    planned = [close(), plan("[ ] Boil", "[ ] Brew"), hand_over({}), DONE]
    model = Short({"Plan": planned})
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(job()))
    assert (result["status"], result["phases"]) == ("completed", 3)
    [refusal] = model.refusals
    assert "1 scope item is open: B1 Make tea." in refusal

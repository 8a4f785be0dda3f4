"""The order of a turn costs a capable model nothing: what one reply may and may not contain."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks import calls
from benchmarks.capable import FILES, MOST_CALLS, Capable, capable_file_content, capable_file_path
from rehearsal import Failure, Reply, Request
from rehearsal.script import Script
from tests.workflows.serving import serving

INSTRUCTIONS = {"agent": "generalist", "instructions": f"Write {FILES} files."}
FEW = 20
"""Files of a shorter work, in two phases."""
ONE_EACH = 54
"""Model calls that it takes at one call a reply."""


def told(request: Request) -> str:
    return str(request["messages"][-1]["content"])


def results(request: Request) -> list[str]:
    return [str(each["content"]) for each in request["messages"] if each["role"] == "tool"]


def plan(*boxes: str) -> tuple[str, dict[str, Any]]:
    text = "# Plan\n\n## Phase 1: Tea\n" + "".join(f"- [ ] {box}\n" for box in boxes)
    return ("write_file", {"path": "plan.md", "content": text})


def write(name: str) -> tuple[str, dict[str, Any]]:
    return ("write_file", {"path": name, "content": f"# {name}\n\ntea\n"})


def todos(*contents: str, **more: Any) -> tuple[str, dict[str, Any]]:
    listed = [{"content": text, "items": [f"P{n}"]} for n, text in enumerate(contents, 1)]
    return ("todo_write", {"phase": "Tea", "description": "", "todos": listed, **more})


def finish(*deliverables: str) -> tuple[str, dict[str, Any]]:
    claim = {"summary": "Tea was made.", "deliverables": deliverables, "confidence": 0.9}
    return ("job_complete", claim)


DONE = ("todo_complete", {"notes": "done"})
BEGIN = Reply(calls=[write("workspace.md"), plan("Boil", "Brew"), todos("Boil", "Brew")])
START = {"agent": "generalist", "instructions": "Make tea."}


async def test_sixty_files_take_a_few_replies(temporal: Client, root: Root) -> None:
    model = Capable(MOST_CALLS)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(INSTRUCTIONS)
        result = await jobs.result(handle)
        files = jobs.snapshot(handle, result["checkpoint"]).files
    assert result["status"] == "completed"
    assert result["unresolved"] == []
    assert model.calls <= calls.LIMIT
    for number in range(1, FILES + 1):
        assert files.read(capable_file_path(number)).decode() == capable_file_content(number)


async def test_with_one_call_a_reply_nothing_gets_worse(temporal: Client, root: Root) -> None:
    model = Capable(1, FEW)
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(INSTRUCTIONS))
    assert result["status"] == "completed"
    assert model.calls <= ONE_EACH


async def test_three_corrections_through_a_fork(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Capable(MOST_CALLS, FEW), queue="corrected") as jobs:
        first = await jobs.start(INSTRUCTIONS)
        result = await jobs.result(first)
    wrong = [capable_file_path(number) for number in (3, 10, 20)]
    edits = [("edit_file", {"path": each, "old": "square", "new": "value"}) for each in wrong]
    model = Script(
        Reply(calls=[("read_file", {"path": each}) for each in wrong]),
        Reply(calls=[*edits, finish(*wrong)]),
    )
    async with serving(temporal, root, model) as jobs:
        fork = await jobs.start(
            {
                "fork": {"job": first.id, "phase": result["phases"]},
                "instructions": "Say value instead of square in files 3, 10 and 20.",
            }
        )
        corrected = await jobs.result(fork)
        status = await fork.query("status")
        files = jobs.snapshot(fork, corrected["checkpoint"]).files
    model.verify()
    assert corrected["status"] == "completed"
    assert all("Its value is" in files.read(each).decode() for each in wrong)
    # Todos that nobody did are not shown as done.
    assert [todo["status"] for todo in status["todos"]] == [
        "passed over",
        "passed over",
        "completed",
    ]


async def test_what_a_failed_call_stands_before_does_not_count(
    temporal: Client, root: Root
) -> None:
    model = Script(
        BEGIN,
        Reply(calls=[write("output/a.md"), DONE, write("../out"), DONE, DONE]),
        lambda request: Reply(calls=[DONE]),
        # The same at the end of the job.
        Reply(calls=[write("workspace.md"), write("/etc/passwd"), finish("output/a.md")]),
        Reply(calls=[finish("output/a.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        result = await jobs.result(handle)
    model.verify()
    assert result["status"] == "completed"
    last_results = results(model.requests[2])[-2:]
    for each in last_results:
        assert each.startswith("Error: Not counted yet: write_file ../out before it failed (")
        assert each.endswith("See to that, then call todo_complete again.")
    assert "☑ 1. Boil" in told(model.requests[2])
    assert "▶ 2. Brew" in told(model.requests[2])
    assert "Not counted yet: write_file /etc/passwd" in results(model.requests[4])[-1]
    assert "job_complete again" in results(model.requests[4])[-1]


async def test_a_reply_of_a_refused_write_and_two_claims_completes_nothing(
    temporal: Client, root: Root
) -> None:
    model = Script(
        Reply(calls=[write("workspace.md"), plan("Boil")]),
        Reply(calls=[write("archive/mine.md"), DONE, finish("workspace.md")]),
        Reply(calls=[todos("Boil")]),
        lambda request: Reply("Enough."),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        await jobs.until(handle, phase=lambda phase: phase["number"] == 2)
        await handle.signal("cancel", {})
    refused = results(model.requests[2])[-3:]
    assert "kept by the system" in refused[0]
    for answer in refused[1:]:
        assert "Not counted yet: write_file archive/mine.md before it failed" in answer
    # The next reply handed over; the files of the other todos had changed, so that was enough.


async def test_what_comes_after_the_end_of_a_phase_is_named_in_the_next(
    temporal: Client, root: Root
) -> None:
    model = Script(
        BEGIN,
        Reply(calls=[write("output/a.md"), DONE, DONE, write("output/late.md"), DONE]),
        Reply(calls=[write("workspace.md"), finish("output/a.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        result = await jobs.result(handle)
        files = jobs.snapshot(handle, result["checkpoint"]).files
    model.verify()
    assert "not run: write_file output/late.md. Make those calls" in told(model.requests[2])
    assert files.entry("output/late.md") is None
    # The boxes covered by the todos were ticked with them.
    assert files.read("plan.md").decode().count("[x]") == 2
    assert "☑ 3. Settle in plan.md" in told(model.requests[2])
    assert "☑ 1. Take stock" in told(model.requests[2])


async def test_what_is_not_seen_is_asked_for_by_name(temporal: Client, root: Root) -> None:
    model = Script(
        Reply(calls=[plan("Boil"), todos("Boil")]),
        Reply(calls=[DONE]),
        lambda request: Reply("Enough."),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        await jobs.until(handle, phase=lambda phase: phase["number"] == 2)
        await handle.signal("cancel", {})
    message = told(model.requests[1])
    assert "The phase is over once these todos are done as well: 1. Survey the workspace" in message
    assert "(no change of workspace.md was seen in this phase)" in message
    assert "2. Write plan.md" not in message.partition("as well: ")[2]


LIST = todos("More", todos=[{"content": "More"}])


def lose_newest(repository: Path) -> None:
    """Lose the checkpoints that are in no pack yet."""
    for unpacked in repository.glob("journal/*"):
        unpacked.unlink()


NEWS = ("append_file", {"path": "workspace.md", "content": "More is known.\n"})
AFTER = {
    "not written again": [
        Reply(calls=[("read_file", {"path": "instructions.md"})]),
        # All boxes are ticked: without a new list the phase could end.
        Reply(calls=[NEWS]),
        Reply(calls=[finish("output/a.md")]),
    ],
    "written again": [
        Reply(calls=[LIST, NEWS]),
        Reply(calls=[write("output/b.md"), DONE]),
        Reply(calls=[NEWS, finish("output/a.md")]),
    ],
}


@pytest.mark.parametrize("after", AFTER)
async def test_a_list_that_is_lost_with_its_checkpoint_was_not_handed_over(
    temporal: Client, root: Root, after: str
) -> None:
    model = Script(
        Reply(calls=[write("workspace.md"), plan("Boil"), todos("Boil")]),
        Reply(calls=[write("output/a.md"), DONE]),
        Reply(calls=[LIST]),
        Failure(401, "bad key"),
        *AFTER[after],
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        await jobs.until(handle, waiting_for="credentials")
        lose_newest(root.repository(handle.id))
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    model.verify()
    assert result["phases"] == (5 if after == "written again" else 3)
    assert "todos.yaml" not in told(model.requests[5])


async def test_a_list_that_was_taken_away_again_ends_no_phase(temporal: Client, root: Root) -> None:
    away = ("delete_file", {"path": "todos.yaml"})
    model = Script(
        Reply(calls=[write("workspace.md"), plan("Boil"), todos("Boil")]),
        Reply(calls=[write("output/a.md"), DONE]),
        Reply(calls=[NEWS, LIST, away]),
        Reply(calls=[finish("output/a.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(START))
    model.verify()
    assert (result["status"], result["phases"]) == ("completed", 3)


async def test_no_todo_is_shown_as_done_by_an_end_of_another_kind(
    temporal: Client, root: Root
) -> None:
    """The first phase's list hands over, and the final one completes the job."""
    ticked = ("write_file", {"path": "plan.md", "content": "# Plan\n\n## Phase 1: Tea\n- [x] a\n"})
    model = Script(Reply(calls=[write("output/a.md"), ticked, finish("output/a.md")]))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        assert (await jobs.result(handle))["status"] == "completed"
        shown = [todo["status"] for todo in (await handle.query("status"))["todos"]]
    assert shown == ["passed over", "completed", "completed", "passed over"]

    model = Script(
        Reply(calls=[write("output/tea.md"), DONE, DONE]),
        Reply(calls=[LIST]),
        Reply(calls=[write("output/more.md"), DONE]),
        Reply(calls=[finish("output/tea.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "set": SHORT})
        result = await jobs.result(handle)
        page = jobs.snapshot(handle, result["checkpoint"]).read_text("archive/phase_002.md")
    assert "- [ ] 1. Call job_complete with the tea. (pending)" in page


async def test_what_a_completed_todo_has_settled_is_not_held_against_the_model(
    temporal: Client, root: Root
) -> None:
    read = ("read_file", {"path": "instructions.md"})
    model = Script(
        BEGIN,
        Reply(calls=[read, read, read, write("output/a.md"), DONE]),
        Reply(calls=[read, read, read]),
        Reply(calls=[DONE]),
        Reply(calls=[write("workspace.md"), finish("output/a.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(START))
    model.verify()
    assert result["status"] == "completed"
    assert "in a row" not in told(model.requests[2])
    assert "read_file was called 3 times in a row" in told(model.requests[3])


async def test_the_last_turn_before_a_rewind_says_so_whatever_else_is_missing(
    temporal: Client, root: Root
) -> None:
    read = ("read_file", {"path": "instructions.md"})
    model = Script(
        Reply(calls=[plan("Boil"), todos("Boil"), read, read, read]),
        Reply(calls=[read, read]),
        Reply(calls=[write("output/a.md")]),
        lambda request: Reply("Enough."),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        await jobs.until(handle, rewinds=1)
        await handle.signal("cancel", {})
    both = told(model.requests[1])
    assert "1. Survey the workspace" in both
    assert "read_file was called 3 times in a row" in both
    last = told(model.requests[2])
    assert "In this reply only " in last
    assert " are accepted: " in last


SHORT = {
    "todos.work": ["Make the tea.", "Taste it."],
    "todos.final": ["Call job_complete with the tea."],
}


async def test_a_list_of_work_that_calls_job_complete_ends_the_job(
    temporal: Client, root: Root
) -> None:
    model = Script(Reply(calls=[write("output/tea.md"), finish("output/tea.md")]))
    lists = {"todos.work": [*SHORT["todos.work"], "Call job_complete with the tea."]}
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start({**START, "set": lists}))
    model.verify()
    assert (result["status"], result["phases"]) == ("completed", 1)
    assert "3. Call job_complete with the tea." in told(model.requests[0])


async def test_an_agent_whose_work_is_one_list_begins_with_it(temporal: Client, root: Root) -> None:
    model = Script(
        Reply(calls=[write("output/tea.md"), DONE, DONE]),
        Reply(calls=[finish("output/tea.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "items": ["tea"], "set": SHORT})
        result = await jobs.result(handle)
        status = await handle.query("status")
        plan_text = jobs.snapshot(handle, result["checkpoint"]).read_text("plan.md")
    model.verify()
    assert "The job begins. Its instructions" in model.requests[0]["messages"][1]["content"]
    assert "tactical phase 1" in told(model.requests[0])
    assert (result["status"], result["phases"]) == ("completed", 2)
    assert status["scope"] == {
        "original": 1,
        "completed": 1,
        "added": 0,
        "dropped": 0,
        "open": 0,
        "steps": 2,
        "steps_completed": 2,
    }
    assert "- [x] Make the tea.\n- [x] Taste it.\n" in plan_text


async def test_before_the_end_such_an_agent_can_still_hand_over_work(
    temporal: Client, root: Root
) -> None:
    model = Script(
        Reply(calls=[write("output/tea.md"), DONE, DONE]),
        Reply(calls=[todos("Warm it up.", todos=[{"content": "Warm it up."}])]),
        Reply(calls=[write("output/warm.md"), DONE]),
        Reply(calls=[finish("output/tea.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start({**START, "set": SHORT}))
    model.verify()
    assert "Warm it up." in told(model.requests[2])
    assert result["phases"] == 4


async def test_refused_completions_count_over_phases(temporal: Client, root: Root) -> None:
    def go_on(request: Request) -> Reply:
        if "tactical" in told(request).partition("\n")[0]:
            return Reply(calls=[("list_files", {}), DONE])
        if any(answer.startswith("Error: ") for answer in results(request)[-1:]):
            return Reply(calls=[todos("a", todos=[{"content": "a"}])])
        return Reply(calls=[finish("output/missing.md")])

    async with serving(temporal, root, go_on) as jobs:
        # Its phases do nothing, which is not what this is about.
        idle = {"nudge": 98, "then": 99, "wait": 100}
        handle = await jobs.start({**START, "set": {**SHORT, "stuck.idle_phases": idle}})
        status = await jobs.until(handle, status="waiting")
        await handle.signal("cancel", {})
    assert status["waiting_for"] == "review"
    assert status["refused_completions"] == 3
    assert status["phase"]["number"] > 3


async def test_a_deliverable_that_changed_is_a_new_claim(temporal: Client, root: Root) -> None:
    model = Script(
        Reply(calls=[write("notes/a.md"), DONE, DONE]),
        *(
            Reply(
                calls=[write("output/tea.md") if n % 2 else append(n), finish("output/tea.md", "x")]
            )
            for n in range(4)
        ),
        Reply(calls=[finish("output/tea.md")]),
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start({**START, "set": SHORT}))
    model.verify()
    assert result["status"] == "completed"


def append(number: int) -> tuple[str, dict[str, Any]]:
    return ("append_file", {"path": "output/tea.md", "content": f"cup {number}\n"})


@pytest.mark.parametrize("most", [MOST_CALLS, 1])
def test_the_model_knows_the_least_that_the_work_takes(most: int) -> None:
    assert calls.count_calls_alone(most).calls == -(-FILES // most) + 1

"""The transition from one phase to the next: one step, in which nothing is lost."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.exceptions import ApplicationError

from activities.job.conversation import Conversation
from activities.phases.predefined_todos import predefined_todos
from activities.steps.transition import TransitionActivity
from config.agent_files import load_agent
from protocol.endings import TransitionReply, TransitionRequest
from rehearsal import Reply, Script
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for

PLAN = "# Plan\n\n## Phase 1: Boil\n- [x] boil\n\n## Phase 2: Brew\n- [ ] brew\n"
TODOS = {
    "phase": "Brewing",
    "description": "Brew it.",
    "todos": [
        {"id": 3, "content": "Brew.", "items": ["P2"], "done_when": {"file_exists": "a.md"}},
        {"id": 7, "content": "Pour."},
    ],
}


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    """Return a job at the last todo of a strategic phase, which is being completed."""
    job = Standing.begin(tmp_path)
    job.write("plan.md", PLAN)
    job.write("todos.yaml", yaml.safe_dump(TODOS))
    job.write("workspace.md", "The kettle is blue.")
    for _ in range(2):
        job.call("todo_complete", notes="Looked at it.")
    job.reply(("todo_complete", json.dumps({"notes": "All is handed over."})))
    return job


async def transition(job: Standing, model_reply: Any, **details: Any) -> TransitionReply:
    request = TransitionRequest(
        **{"root": job.root.id, "commit": job.commit, "at": AT, "step": job.step}
        | {"number": 3, "purpose": "work", "call": 0, "completes": [3], "summary": True}
        | details
    )
    with Script(*([] if model_reply is None else [model_reply])) as script:
        phases = TransitionActivity(job.root, lambda _: client_for(script))
        reply: TransitionReply = await environment(local=False).run(phases.transition, request)
    return reply


async def test_prompts_of_another_version_are_left_to_a_worker_that_can_fill_them(
    job: Standing,
) -> None:
    config = job.open().config
    job.pin(config.model_copy(update={"templates": {**config.templates, "tactical": "{{ new }}"}}))
    with pytest.raises(ApplicationError, match=r"'new' is undefined.*of that version") as caught:
        await transition(job, Reply("It was planned to brew."))
    assert not caught.value.non_retryable


async def test_the_list_is_archived_and_the_next_is_there_in_one_checkpoint(job: Standing) -> None:
    before = job.open()
    reply = await transition(job, Reply("It was planned to brew."))
    after = job.open(reply.commit)

    page = yaml.safe_load(after.read_text("archive/phase_002.yaml"))
    assert [todo["status"] for todo in page["todos"]] == ["completed"] * 3
    assert page["todos"][2]["notes"] == "All is handed over."
    assert "It was planned to brew." in after.read_text("archive/phase_002.md")
    listed = after.read_text("workspace_summary.md")
    assert re.search(rf"archive/phase_002\.md · .* · step {job.step} · Phase 2", listed)
    assert "- Step 3. Notes: All is handed over." in after.read_text("workspace_summary.md")

    phase = after.state.phase
    assert (phase.number, phase.kind, phase.name) == (3, "tactical", "Brewing")
    assert (phase.plan_position, phase.plan_total) == (1, 2)
    assert [(todo.id, todo.content, todo.done) for todo in phase.todos] == [
        (3, "Brew.", False),
        (7, "Pour.", False),
    ]
    assert after.read_bytes("todos.yaml") is None
    assert yaml.safe_load(after.read_text("archive/phase_003.yaml")) == TODOS

    assert [message["role"] for message in after.conversation.messages()] == ["system", "user"]
    assert "The kettle is blue." in after.conversation.messages()[0]["content"]
    shelved = Conversation(after.history.subfolder("0002")).messages()
    assert shelved == before.conversation.messages()
    newest, parent = after.checkpoints.log(reply.commit, 2)
    assert (newest.id, parent.id) == (reply.commit, job.commit)


async def test_a_summary_that_is_taken_back_is_paid_for(job: Standing) -> None:
    undone = await transition(job, None, summary=False)
    reply = await transition(job, Reply("tea " * 400, finish="content_filter"))
    assert (reply.usage.model_calls, reply.usage.completion_tokens > 300) == (0, True)
    pages = [job.open(each.commit).read_text("archive/phase_002.md") for each in (undone, reply)]
    assert pages[0] == pages[1]


async def test_workflow_memory_gets_the_list_without_what_only_checkpoints_keep(
    job: Standing,
) -> None:
    reply = await transition(job, Reply("Planned."))
    assert reply.state.phase.todos[0].done_when is None
    condition = job.open(reply.commit).state.phase.todos[0].done_when
    assert condition is not None
    assert condition.file_exists == "a.md"


async def test_the_boxes_of_the_plan_become_steps_that_are_open(job: Standing) -> None:
    reply = await transition(job, Reply("Planned."))
    assert [item.line for item in reply.state.scope] == ["P1 (open): boil", "P2 (open): brew"]
    assert job.open(reply.commit).read_text("plan.md") == PLAN.replace("[x]", "[ ]")
    # The list is one for the first open phase.
    assert reply.state.phase.covers == ["P1"]


async def test_a_rewind_that_keeps_the_files_ticks_no_box(job: Standing) -> None:
    start = (await transition(job, Reply("Planned."))).commit
    job.commit = start
    job.write("plan.md", PLAN.replace("[ ]", "[x]"))
    request: dict[str, Any] = {
        "purpose": "rewind",
        "outcome": "rewound",
        "call": None,
        "completes": [],
    }
    for keeps in ({"restore_files": False}, {}):
        reply = await transition(job, None, **request, number=4, restore=start, **keeps)
        assert [item.status for item in reply.state.scope] == ["open", "open"]
        assert "[x]" not in job.open(reply.commit).read_text("plan.md")


async def test_a_rewind_says_why_to_the_model_the_archive_and_the_workflow(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    job.reply(("todo_rewind", json.dumps({"issue": "The kettle\nleaks. " + "x" * 3000})))
    request: dict[str, Any] = {
        "purpose": "rewind",
        "outcome": "rewound",
        "completes": [],
        "rewinds": 1,
    }
    reply = await transition(job, None, **request)
    after = job.open(reply.commit)
    assert "The kettle\nleaks." in after.conversation.messages()[1]["content"]
    assert yaml.safe_load(after.read_text("archive/phase_002.yaml"))["issue"].startswith(
        "The kettle"
    )
    assert reply.issue.startswith("The kettle leaks.")
    assert len(reply.issue) <= 500
    assert [todo.done for todo in after.state.phase.todos] == [False] * len(after.state.phase.todos)


async def test_what_worked_after_a_failure_is_kept_with_it(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    job.write("experiences.md", "# Experiences\n\n## Cold tea\n\n- Failed: it was cold\n")
    snapshot = job.open()
    snapshot.state.issue = "it was cold"
    snapshot.state.phase.purpose = "work"
    job.commit = snapshot.save("a second attempt", AT)
    job.call("write_file", path="output/tea.md", content="tea")
    for _ in range(2):
        job.call("todo_complete", notes="Warmed the pot.")
    job.reply(("todo_complete", json.dumps({"notes": "Poured."})))
    reply = await transition(job, None, purpose="transition", summary=False)
    told = job.open(reply.commit).read_text("experiences.md")
    assert told.endswith(
        "- Failed: it was cold\n"
        "- Worked then, in phase 2 (Look): Warmed the pot.; Warmed the pot.; Poured.\n"
    )
    assert reply.work
    assert reply.mark


def contents(purpose: Any, instructions: str) -> list[str]:
    config = load_agent("generalist")
    return [todo.content for todo in predefined_todos(config, purpose, instructions)]


def test_final_todos_of_the_instructions_take_the_place_of_ours() -> None:
    own = "# Tea\n\n## Final todos\n- Taste it.\n- Clean up.\n"
    *first, last = contents("final", own)
    assert first == ["Taste it.", "Clean up."]
    assert "job_complete" in last
    assert contents("transition", own) == contents("transition", "")
    closing = own + "- Call job_complete with the taste.\n"
    assert contents("final", closing)[2:] == ["Call job_complete with the taste."]


def test_our_summary_does_not_take_the_place_of_one_that_is_asked_for() -> None:
    ours = contents("final", "Write output/tea.md.")
    assert any("output/summary.md" in todo for todo in ours)
    theirs = contents("final", "Write output/summary.md with the three best teas.")
    assert theirs == [todo for todo in ours if "output/summary.md" not in todo]


async def test_a_todo_whose_file_has_not_changed_is_passed_over_and_never_ticked(
    tmp_path: Path,
) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    for todo, path in zip(snapshot.state.phase.todos, ("workspace.md", "plan.md"), strict=False):
        todo.updates = path
    job.commit = snapshot.save("lists", AT)
    assert "Passed over todo 1, which is not ticked" in job.call("todo_complete", notes="Known.")
    job.call("write_file", path="plan.md", content=PLAN)
    assert job.call("todo_complete").startswith("Completed todo 2")
    first, second, *_ = job.open().state.phase.todos
    assert (first.done, first.needed, second.done) == (False, False, True)
    # The same reply, or a later one, may still change it.
    job.call("write_file", path="workspace.md", content="The kettle is blue.")
    assert job.open().state.phase.todos[0].done
    job.reply(("todo_rewind", json.dumps({"issue": "it was cold"})))
    reply = await transition(job, None, purpose="rewind", outcome="rewound", summary=False)
    page = yaml.safe_load(job.open(reply.commit).read_text("archive/phase_002.yaml"))
    assert [todo["status"] for todo in page["todos"]][:2] == ["completed", "completed"]

"""The last message of every request: the list, where the work stands, and what to do now."""

import json
from pathlib import Path
from typing import Literal

import pytest

from activities.model.prompt import job_prompt_body, read_prompt_tools
from config.schema.model_settings import ModelConfig
from protocol.phase import PhaseKind
from protocol.scope_ledger import scope_from_texts
from protocol.todo_list import DoneWhen
from tests.activities.standing import Standing


def last(job: Standing, correction: str | None = None) -> list[str]:
    """Return the lines of a request's last message."""
    snapshot = job.open()
    body = json.loads(job_prompt_body(snapshot, snapshot.config.model, correction))
    assert body["messages"][-1]["role"] == "user"
    text: str = body["messages"][-1]["content"]
    return text.splitlines()


def sent(job: Standing) -> bytes:
    snapshot = job.open()
    return job_prompt_body(snapshot, snapshot.config.model, None)


def standing(path: Path, kind: PhaseKind) -> Standing:
    """Return a phase with its first todo done, in a job with three items, one of them covered."""
    job = Standing.begin(path, kind=kind)
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["tea", "water", "cups"])
    snapshot.state.scope[0].status = "completed"
    phase = snapshot.state.phase
    phase.plan_position, phase.plan_total = 2, 4
    phase.todos[0].done = True
    phase.todos[1].done_when = DoneWhen(file_exists="output/tea.md")
    job.commit = snapshot.save("the scope", 1)
    return job


def test_the_list_stands_apart_with_its_place_marks_and_one_instruction(tmp_path: Path) -> None:
    assert last(standing(tmp_path, "tactical"), "Call a tool.") == [
        '# Todo list · tactical phase 2 "Look" · plan 2 of 4',
        "☑ 1. Step 1.",
        "▶ 2. Step 2.",
        "☐ 3. Step 3.",
        "Progress: 1/3",
        "Scope: 1 of 3 items completed",
        "Do todo 2.",
        "It is done when output/tea.md exists.",
        "",
        "Call a tool.",
    ]


def test_what_completes_a_todo_is_named_once_work_was_seen_and_not_after_a_refusal(
    tmp_path: Path,
) -> None:
    job = standing(tmp_path, "tactical")
    assert "Do todo 2." in last(job)
    assert job.call("todo_complete").startswith("Error: ")
    assert "Do todo 2." in last(job)
    job.call("write_file", path="output/coffee.md", content="coffee")
    assert "Do todo 2, then call `todo_complete`." in last(job)
    assert job.call("todo_complete").startswith("Error: ")
    assert "Do todo 2." in last(job)


def test_the_call_that_completes_the_whole_list_is_named_with_it(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical", agent="mender")
    job.call("write_file", path="output/coffee.md", content="coffee")
    line = "Do todo 1, then call `todo_complete`, or `job_complete` once all is done."
    assert last(job)[-1] == line


def test_a_schema_is_shown_while_its_todo_is_the_current_one(tmp_path: Path) -> None:
    job = standing(tmp_path, "tactical")
    snapshot = job.open()
    valid = {"path": "output/tea.json", "schema": {"required": ["cups"]}}
    snapshot.state.phase.todos[1].done_when = DoneWhen.model_validate({"valid": valid})
    job.commit = snapshot.save("a condition", 1)
    assert last(job)[-2:] == [
        "It is done when output/tea.json fits its schema.",
        'The schema: {"required": ["cups"]}',
    ]


def test_the_last_todo_of_a_job_is_completed_by_what_its_gate_takes(tmp_path: Path) -> None:
    job = standing(tmp_path, "strategic")
    snapshot = job.open()
    snapshot.state.phase.purpose = "final"
    job.commit = snapshot.save("final", 1)
    assert "Do todo 2." in last(job)
    snapshot.state.phase.todos[1].done = True
    job.commit = snapshot.save("its last todo", 1)
    assert "Do todo 3, which `job_complete` completes." in last(job)
    snapshot = job.open()
    snapshot.state.phase.kind, snapshot.state.phase.ends_job = "tactical", True
    job.commit = snapshot.save("a phase that may end the job", 1)
    assert "Do todo 3, which `job_complete` completes." in last(job)
    assert job.call("job_complete", summary="x", deliverables=["none.md"]).startswith("Error: ")
    assert "Do todo 3." in last(job)


def test_a_todo_that_a_change_shows_as_done_is_not_asked_for_again(tmp_path: Path) -> None:
    job = standing(tmp_path, "strategic")
    snapshot = job.open()
    first, second = snapshot.state.phase.todos[1:]
    first.updates, second.updates, first.done_when = "workspace.md", "plan.md", None
    job.commit = snapshot.save("what they update", 1)
    assert "Do todo 2." in last(job)
    job.call("write_file", path="workspace.md", content="The kettle is blue.")
    assert (
        "Todo 2 is seen to be done, by a change of workspace.md: call `todo_complete`, or go on "
        "with it."
    ) in last(job)
    job.call("write_file", path="plan.md", content="# Plan\n\n## Phase 1: Tea\n- [ ] x\n")
    assert (
        "Todos 2, 3 are seen to be done, by a change of workspace.md, plan.md: call "
        "`todo_complete` for each, or go on with them."
    ) in last(job)
    job.call("todo_complete")
    assert any(line.startswith("Todo 3 is seen to be done") for line in last(job))
    # The refusal says what is missing; no line beside it says that nothing is.
    assert job.call("read_file", path="none.md").startswith("Error: ")
    assert "Do todo 3." in last(job)


def test_a_strategic_phase_is_told_which_items_are_open(tmp_path: Path) -> None:
    assert "Scope: 1 of 3 items completed; open: S2, S3" in last(standing(tmp_path, "strategic"))


def test_what_is_written_in_a_phase_does_not_change_what_its_requests_begin_with(
    tmp_path: Path,
) -> None:
    job = standing(tmp_path, "strategic")
    before = sent(job)
    job.call("write_file", path="workspace.md", content="The kettle is blue.")
    job.call("write_file", path="plan.md", content="# Plan\n\n## Phase 1: Tea\n- [ ] x\n")
    after = sent(job)
    cut = before.index(b"Todo list")
    assert before.startswith(b'{"model"')
    assert b'"tools":[' in before[:cut]
    assert after[: cut - 100] == before[: cut - 100]


@pytest.mark.parametrize("kind", ["strategic", "tactical"])
def test_every_turn_has_it_and_only_the_newest(tmp_path: Path, kind: PhaseKind) -> None:
    job = standing(tmp_path, kind)
    for _ in range(2):
        job.call("list_files")
        snapshot = job.open()
        body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
        shown = ["Todo list ·" in str(message["content"]) for message in body["messages"]]
        assert shown == [False] * (len(shown) - 1) + [True]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_tools_of_a_request_are_read_without_its_conversation(
    tmp_path: Path, api: Literal["chat", "responses"]
) -> None:
    snapshot = standing(tmp_path, "tactical").open()
    model = snapshot.config.model.model_copy(update={"api": api})
    whole = job_prompt_body(snapshot, model, None)
    key = b',"messages":[' if api == "chat" else b',"input":['
    unreadable = whole.partition(key)[0] + key + b"no JSON"
    assert read_prompt_tools(unreadable, model) == json.loads(whole)["tools"] != []


def test_tools_whose_schemas_look_like_a_conversation_are_read_all_the_same() -> None:
    tools = [{"name": "send", "parameters": {"default": {"to": "", "messages": [1]}}}]
    body = json.dumps({"tools": tools, "messages": []}, separators=(",", ":")).encode()
    assert read_prompt_tools(body, ModelConfig(name="m")) == tools
    assert read_prompt_tools(b"{}", ModelConfig(name="m")) == []

"""The scope tools, and how the boxes of the plan follow the ledger."""

import json
from pathlib import Path

from protocol.requests import ToolReply
from protocol.scope_ledger import ScopeItem, scope_from_texts, sync_plan_steps
from tests.activities.standing import Standing

PLAN = "# Plan\n\n## Phase 1: Brew\n- [{}] Boil\n- [ ] Brew\n"


def standing(path: Path, items: list[ScopeItem]) -> Standing:
    job = Standing.begin(path)
    snapshot = job.open()
    snapshot.state.scope = items
    job.commit = snapshot.save("scope", 1)
    return job


def made(job: Standing, tool: str, **arguments: object) -> ToolReply:
    job.reply((tool, json.dumps(arguments)))
    reply = job.run(tool, job.request())
    job.commit = reply.commit
    return reply


def test_an_item_is_added_and_reported(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_texts(["tea"]))
    reply = made(job, "add_item", text="cups")
    assert [item.line for item in reply.scope] == ["A1 (open): cups"]
    assert job.open().state.scope[1].slim == reply.scope[0]


def test_an_item_is_dropped_with_its_reason_and_reported(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_texts(["tea", "water"]))
    reply = made(job, "drop_item", ids=["S2"], reason="None is needed.")
    assert [(item.id, item.status, item.reason) for item in reply.scope] == [
        ("S2", "dropped", "None is needed.")
    ]
    assert job.open().state.scope[0].status == "open"


def test_what_cannot_be_dropped_or_added_changes_nothing(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_texts(["tea"]))
    assert "Open are: S1" in job.call("drop_item", ids=["S7"], reason="There is none.")
    assert "says nothing" in job.call("drop_item", ids=["S1"], reason="done elsewhere")
    assert "reason" in job.call("drop_item", ids=["S1"], reason=" ")
    assert "text" in job.call("add_item", text="")
    assert [item.line for item in job.open().state.scope] == ["S1 (open): tea"]


def test_a_box_that_the_model_ticks_completes_nothing(tmp_path: Path) -> None:
    job = standing(tmp_path, sync_plan_steps([], [(1, "Boil"), (1, "Brew")]))
    assert made(job, "write_file", path="plan.md", content=PLAN.format(" ")).scope == []
    reply = made(job, "edit_file", path="plan.md", old="[ ] Boil", new="[x] Boil")
    assert reply.scope == []
    assert job.open().read_text("plan.md") == PLAN.format(" ")
    assert "Taken back in plan.md: 1 tick." in job.call(
        "write_file", path="plan.md", content=PLAN.format("x")
    )


def test_a_step_that_leaves_the_plan_is_named_and_can_be_dropped(tmp_path: Path) -> None:
    job = standing(tmp_path, sync_plan_steps([], [(1, "Boil"), (1, "Brew")]))
    job.call("write_file", path="plan.md", content=PLAN.format(" "))
    told = job.call("write_file", path="plan.md", content="# Plan\n\n## Phase 1: Tea\n- [ ] Brew\n")
    assert "still owed: P1 Boil" in told
    job.call("write_file", path="plan.md", content=PLAN.format(" "))
    job.call("drop_item", ids=["P1"], reason="The water boils already.")
    assert "- [✗] Boil\n- [ ] Brew\n" in job.open().read_text("plan.md")


def test_other_calls_report_nothing(tmp_path: Path) -> None:
    job = standing(tmp_path, sync_plan_steps([], [(1, "Boil")]))
    reply = made(job, "write_file", path="notes.md", content=PLAN.format("x"))
    assert "scope" not in reply.model_dump(exclude_unset=True)


def test_completing_a_todo_says_which_item_it_counts_for(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["tea"])
    snapshot.state.phase.covers = ["S1"]
    job.commit = snapshot.save("scope", 1)
    job.call("write_file", path="output/tea.md", content="green")
    assert "names no scope item and counts for S1." in job.call("todo_complete")
    assert "scope item" not in job.call("todo_complete")

"""The scope tools, and how the plan's boxes complete items as they are ticked."""

from __future__ import annotations

import json
from pathlib import Path

from protocol.requests import ToolReply
from protocol.scope_ledger import ScopeItem, scope_from_plan, scope_from_texts
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
    assert job.open().state.scope[1] == reply.scope[0]


def test_an_item_is_dropped_with_its_reason_and_reported(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_texts(["tea", "water"]))
    reply = made(job, "drop_item", id="S2", reason="None is needed.")
    assert [(item.id, item.status, item.reason) for item in reply.scope] == [
        ("S2", "dropped", "None is needed.")
    ]
    assert job.open().state.scope[0].status == "open"


def test_what_cannot_be_dropped_or_added_changes_nothing(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_texts(["tea"]))
    assert "The open items are: S1" in job.call("drop_item", id="S7", reason="x")
    assert "reason" in job.call("drop_item", id="S1", reason=" ")
    assert "text" in job.call("add_item", text="")
    assert [item.line for item in job.open().state.scope] == ["S1 (open): tea"]


def test_ticking_a_box_completes_its_item(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_plan([(False, "Boil"), (False, "Brew")]))
    assert made(job, "write_file", path="plan.md", content=PLAN.format(" ")).scope == []
    reply = made(job, "edit_file", path="plan.md", old="[ ] Boil", new="[x] Boil")
    assert [item.line for item in reply.scope] == ["P1 (completed): Boil"]
    assert [item.status for item in job.open().state.scope] == ["completed", "open"]


def test_other_calls_report_nothing(tmp_path: Path) -> None:
    job = standing(tmp_path, scope_from_plan([(False, "Boil")]))
    reply = made(job, "write_file", path="notes.md", content=PLAN.format("x"))
    assert "scope" not in reply.model_dump(exclude_unset=True)


def test_completing_a_todo_says_which_item_it_counts_for(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["tea"])
    job.commit = snapshot.save("scope", 1)
    assert "names no scope item and counts for S1." in job.call("todo_complete")
    assert "scope item" not in job.call("todo_complete")

"""Guards from the calls that people refused, as these stood: real checkpoints."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from activities.guards.matching import GuardSituation, match_guard_groups
from activities.learning.finished_jobs import CallMoment, find_call_moments
from activities.learning.learning_pass import LearningPass
from activities.learning.proposals import propose_guard, stricter_version
from activities.learning.trace_patterns import Pattern, extract_patterns
from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.guards import Guard, Match
from protocol.todo_list import Todo
from tests.activities.standing import JOB, Standing
from tests.activities.traces.noting import store, trace

SHELL = {"tools": ["files", "todos", "job", "documents", "traces", "shell"]}
LOG = "logs/app.log"


def standing(path: Path, todo: str = "Test the login.", tools: Any = None) -> Standing:
    job = Standing.begin(path, kind="tactical", set={"tools": tools or SHELL["tools"]})
    snapshot = job.open()
    snapshot.state.phase.todos = [Todo(id=1, content=todo), Todo(id=2, content="Rest.")]
    job.commit = snapshot.save("todos", 1)
    job.write(LOG, "line\n" * 600)
    return job


def refused(job: Standing, tool: str, **details: Any) -> tuple[Pattern, list[CallMoment]]:
    """Return a pattern of five refusals of the job's newest reply, and their moments."""
    base = {
        "agent": "generalist", "project": "", "type": "violation", "source": "hook", "guard": "h",
        "stage": "", "tool": tool, "path": details.pop("path", ""), "what_happened": "refused",
        "what_was_correct": "", "why": "Not so.", "at": 1, "checkpoint": job.commit, "job": JOB,
        "step": job.step,
    }  # fmt: skip
    rows: list[Any] = [SimpleNamespace(id=n, **base | details) for n in range(5)]
    [pattern] = extract_patterns(rows)
    return pattern, find_call_moments(job.root, pattern.traces)


def proposed(job: Standing, tool: str, path: str = "") -> Guard | None:
    pattern, moments = refused(job, tool, path=path)
    return propose_guard(pattern, 1, moments).guard


def test_a_todo_about_a_test_that_is_completed_without_a_run(tmp_path: Path) -> None:
    job = standing(tmp_path)
    job.call("read_file", path=LOG)
    job.reply(("todo_complete", "{}"))
    guard = proposed(job, "todo_complete")
    assert guard
    assert (guard.name, guard.point) == ("generalist.todo_complete.unproved", "todo_complete")
    assert guard.match.phase == "tactical"
    assert guard.message == "Not so."


@pytest.mark.parametrize(
    ("todo", "tools"),
    [("Write the guide.", None), ("Test the login.", ["files", "todos", "job"])],
)
def test_no_guard_where_nothing_was_claimed_or_nothing_can_be_run(
    tmp_path: Path, todo: str, tools: Any
) -> None:
    job = standing(tmp_path, todo, tools)
    job.reply(("todo_complete", "{}"))
    assert proposed(job, "todo_complete") is None


def test_no_such_guard_where_something_was_run_before_it(tmp_path: Path) -> None:
    job = standing(tmp_path)
    job.call("run_command", command="true")
    job.reply(("todo_complete", "{}"))
    assert proposed(job, "todo_complete") is None


def test_a_run_counts_for_the_todo_it_was_made_in_and_only_if_it_was_made(tmp_path: Path) -> None:
    job = standing(tmp_path)
    rule = Guard(
        name="g", point="todo_complete", match=Match(not_ran=["run_*"], todo="Test|Rest"),
        decision="deny", message="No.",
    )  # fmt: skip

    def applies() -> bool:
        now = GuardSituation.from_snapshot(job.open(), "todo_complete", "todo_complete")
        return match_guard_groups(rule, now) is not None

    assert applies()
    assert job.call("run_command", command="true", timeout=10**6).startswith("Error")
    assert applies()
    job.call("run_command", command="false")
    assert not applies()
    job.call("todo_complete")
    assert applies()


def test_a_feature_that_is_set_to_tested_without_a_run(tmp_path: Path) -> None:
    job = standing(tmp_path)
    features = '{"features": [{"id": "login", "tested": %s}]}'
    job.write("output/feature-list.json", features % "false")
    written = {"path": "output/feature-list.json", "content": features % "true"}
    job.reply(("write_file", json.dumps(written)))
    guard = proposed(job, "write_file", written["path"])
    assert guard
    assert guard.name == "generalist.tested.unproved"

    tester = job.open().config.model_copy(update={"rules": [guard]})
    job.pin(tester)
    assert job.call("write_file", **written).startswith("Error: Refused by generalist.tested")
    # A text without `tested` passes, and so does the claim after a run.
    assert job.call("write_file", path="output/notes.md", content="tested").startswith("Wrote")
    job.call("run_command", command="true")
    assert job.call("write_file", **written).startswith("Wrote")


@pytest.mark.parametrize("tool", ["list_files", "delete_file"])
def test_a_pattern_about_the_whole_workspace_can_be_looked_at(tmp_path: Path, tool: str) -> None:
    job = standing(tmp_path)
    job.reply((tool, json.dumps({"path": "."})))
    guard = proposed(job, tool, ".")
    assert (guard and guard.match.path) == (["."] if tool == "delete_file" else None)


def read(job: Standing) -> list[CallMoment]:
    job.reply(("read_file", json.dumps({"path": LOG})))
    return refused(job, "read_file", path=LOG)[1]


def rule(**details: Any) -> Guard:
    fields = {
        "name": "logs",
        "point": "before_tool",
        "decision": "deny",
        "message": "No.",
        **details,
    }
    return Guard.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ({"match": {"reads_lines": 1000}}, {"reads_lines": 500}),
        ({"match": {"path": ["*.log"], "reads_lines": 600}}, {"reads_lines": 500}),
        ({"match": {"longer": 100}}, {"longer": 10}),
        ({"decision": "ask"}, {"decision": "deny"}),
        ({"decision": "feedback", "point": "after_tool"}, {"decision": "deny"}),
    ],
)
def test_a_guard_that_lets_a_call_pass_by_one_limit_or_decision(
    tmp_path: Path, fields: dict[str, Any], changed: dict[str, Any]
) -> None:
    stricter = stricter_version(rule(**fields), read(standing(tmp_path)))
    assert stricter
    [(name, value)] = changed.items()
    assert getattr(stricter if name == "decision" else stricter.match, name) == value
    assert stricter.point == "before_tool"


@pytest.mark.parametrize(
    "fields",
    [
        {"match": {"reads_lines": 500}},
        {"match": {"path": ["*.txt"], "reads_lines": 1000}},
        {"match": {"tool": ["write_file"]}, "decision": "ask"},
        {"match": {"content": ["a"]}, "decision": "feedback", "point": "after_tool"},
        {"decision": "allow"},
    ],
)
def test_a_guard_that_is_about_something_else_or_refuses_it_is_left(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    assert stricter_version(rule(**fields), read(standing(tmp_path))) is None


def test_a_learned_guard_gets_a_stricter_revision_and_no_second_guard(tmp_path: Path) -> None:
    job = standing(tmp_path)
    job.reply(("read_file", json.dumps({"path": LOG})))
    guards = LearnedGuards(job.root.path)
    name = "generalist.read_file.logs"
    before = rule(name=name, match={"tool": ["read_file"], "reads_lines": 700})
    guards.put_revision(
        LearnedRevision(
            name=name, stage="active", at=1, since=1, why="w", agent="generalist", guard=before
        )
    )
    details = {"source": "hook", "guard": "h", "path": LOG, "commit": job.commit}
    traces = [trace(n, "read_file was refused", **details) for n in range(6)]
    store(job.root, *traces[:3], job=JOB)
    # The other job's checkpoints no longer exist.
    store(job.root, *traces[3:], job="gone")

    [line] = LearningPass(job.root).learn()
    assert line.startswith(
        f"{name}: proposed (experiment), stricter than before, reads_lines 700 -> 500."
    )
    assert guards.newest_path(name).name == "0002.yaml"
    assert [one.name for one in guards.newest_revisions()] == [name]
    own: list[Guard] = []
    assert [r.stage for r in guards.rules_for("generalist", "", own)] == ["active", "experiment"]
    assert LearningPass(job.root).learn() == []

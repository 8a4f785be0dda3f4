"""Habits that become guards, each over a series of jobs: refused, proposed, tried, blocked.

The habit of writing files in the wrong place is tested in `test_learning`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.learning.learning_pass import LearningPass
from activities.stores.stored_traces import read_job_traces
from cli.report.report_store_reader import ReportStoreReader
from config.learned_guards import LearnedGuards
from rehearsal.request_view import RequestView, is_error_result
from tests.workflows.habits import done, kept_by
from tests.workflows.serving import serving
from tests.workflows.short import DONE, TEA, Call, Does, Short, close, hand_over

SHELL = {"tools": ["files", "todos", "job", "documents", "traces", "shell"]}


@dataclass
class Claims:
    """A model that marks each cup as tested, and tests it only after a refusal."""

    cups: int
    refused: list[str] = field(default_factory=list)

    def __call__(self, request: Any) -> Any:
        todos = [{"content": f"Test cup {n}"} for n in range(1, self.cups + 1)]
        verbs: dict[str, Sequence[Call] | Does] = {
            "Hand": [hand_over({}, *todos), DONE],
            "Test": self.test,
            "Close": [close("output/tea.md")],
        }
        return Short(verbs)(request)

    def test(self, view: RequestView) -> Sequence[Call]:
        assert view.current_todo
        cup = view.current_todo.text.removeprefix("Test ")
        claim: Call = ("todo_complete", {"notes": f"{cup} is tested"})
        if view.refusal and not view.calls:
            self.refused.append(view.refusal)
            return [("run_command", {"command": f"echo {cup} holds"}), claim]
        # Something is done, as a list in which nothing was cannot end, and no run.
        return [TEA, claim]


def violations(root: Root, job_id: str) -> list[Any]:
    return [row for row in read_job_traces(root, job_id) if row.type == "violation"]


async def test_tested_is_not_said_without_a_run_once_its_guard_is_promoted(
    temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = 'cup=$(grep -o "cup [0-9]*") && ! grep -qs "$cup" commands/log.jsonl || exit 0'
    rule = kept_by(tmp_path / "rule.sh", "todo_complete", ran, "Run the test before you say so.")
    model = Claims(3)
    async with serving(temporal, root, model) as jobs:
        for _ in range(2):
            blocked = await done(jobs, set={**SHELL, **rule})
        assert len(model.refused) == 6
        assert [row.tool for row in violations(root, blocked)] == ["todo_complete"] * 3

        [line] = LearningPass(root).learn()
        name = "generalist.todo_complete.unproved"
        assert line.startswith(f"{name}: proposed (experiment)")
        [now] = LearningPass(root).guard_statuses()
        # Counted in the replay: claims that were refused, not those after a run.
        assert (now.figures.evaluations, now.figures.own) == (0, 6)

        model.cups, model.refused = 10, []
        for _ in range(2):
            tried = await done(jobs, set=SHELL)
            assert model.refused == []
            assert {row.stage for row in violations(root, tried)} == {"experiment"}
        [now] = LearningPass(root).guard_statuses()
        assert (now.figures.evaluations, now.figures.wrong, now.ready) == (20, 0, True)
        LearningPass(root).promote_guard(name)

        model.cups = 2
        last = await done(jobs, set=SHELL)
        # Each is refused at the first try, including the phase's last; after a run they pass.
        assert len(model.refused) == 2
    assert "Run the test before you say so." in model.refused[0]

    # A report counts these as one mistake: refused, seen on trial, and refused by its guard.
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root.path))
    [habit] = ReportStoreReader().habits("", "generalist", last)
    assert [(one.refused, one.tried, one.here) for one in habit.jobs] == [
        *((3, 0, False), (3, 0, False), (0, 10, False), (0, 10, False), (2, 0, True))
    ]
    assert habit.guards == [f"{name} (active)"]


@dataclass
class Reader:
    """A model that writes logs of so many lines and reads each in full."""

    lines: Sequence[int]
    refused: list[int] = field(default_factory=list)
    """Line counts of the refused ones."""

    def __call__(self, request: Any) -> Any:
        return Short({"Work": self.work})(request)

    def work(self, view: RequestView) -> Sequence[Call]:
        if view.calls:
            reads = [done_call for done_call in view.calls if done_call.tool == "read_file"]
            pairs = zip(self.lines, reads, strict=True)
            self.refused = [
                lines for lines, done_call in pairs if is_error_result(done_call.result)
            ]
            return [TEA, DONE]
        calls: list[Call] = []
        for n, lines in enumerate(self.lines):
            path = f"logs/{n}.log"
            calls.append(("write_file", {"path": path, "content": f"line {n}\n" * lines}))
            calls.append(("read_file", {"path": path}))
        return calls


async def test_a_guard_whose_limit_lets_a_habit_pass_becomes_stricter(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    rule = kept_by(tmp_path / "rule.sh", "Read", "", "Search in logs.")
    model = Reader([600] * 3)
    async with serving(temporal, root, model) as jobs:
        for _ in range(2):
            await done(jobs, set=rule)
            assert model.refused == [600] * 3

        [line] = LearningPass(root).learn()
        name = "generalist.log-reading"
        assert line.startswith(
            f"{name}: proposed (experiment), stricter than the agent's own log-reading, "
            "reads_lines 1000 -> 500."
        )
        assert LearningPass(root).learn() == []

        model.lines = [600] * 10
        for _ in range(2):
            await done(jobs)
            assert model.refused == []
        [now] = LearningPass(root).guard_statuses()
        assert (now.figures.evaluations, now.figures.wrong, now.ready) == (20, 0, True)
        LearningPass(root).promote_guard(name)

        # It replaced the agent's own guard, whose limit no longer applies.
        model.lines = [600, 1200, 400]
        last = await done(jobs)
        assert model.refused == [600, 1200]
    assert {row.guard for row in read_job_traces(root, last)} == {name}
    assert [one.stage for one in LearnedGuards(root.path).revisions(name)] == [
        *("experiment", "active")
    ]

"""Mistakes that recur: which are listed, over which jobs, and how they are drawn."""

from types import SimpleNamespace
from typing import Any

import pytest

from cli.report.habits import find_habits
from cli.report.html_page import render_html_page
from cli.report.report_content import ProjectReport
from config.learned_guards import LearnedRevision
from config.schema.guards import Guard
from protocol.status import ProjectStatus
from tests.cli.report.samples import NOON, habit, report

NAME = "generalist.write_file.scratch"


def row(id: int, job: str, **details: Any) -> Any:
    base = {
        "id": id, "job": job, "agent": "generalist", "project": "", "at": 1000 + id,
        "type": "violation", "source": "hook", "guard": "rule.sh", "tool": "write_file",
        "path": f"scratch/{id}.md", "what_happened": "write_file was refused",
        "what_was_correct": "", "why": "Write under output/.", "stage": "", "step": id,
    }  # fmt: skip
    return SimpleNamespace(**base | details)


def learned(*numbers: int) -> LearnedRevision:
    guard = Guard(name=NAME, point="before_tool", decision="deny", message="No.")
    return LearnedRevision(
        name=NAME, stage="active", at=1, since=1, why="w", agent="generalist", guard=guard,
        traces=list(numbers),
    )  # fmt: skip


def test_a_pattern_is_told_over_jobs_in_the_order_of_time() -> None:
    rows = [row(1, "b"), row(2, "b"), row(3, "a"), row(9, "c", tool="read_file", why="Else.")]
    [mistake] = find_habits(rows, [], {"z": 1003, "b": 1005})
    assert [(one.job, one.refused) for one in mistake.jobs] == [
        *(("a", 1), ("z", 0), ("b", 2), ("c", 0))
    ]
    assert (mistake.times, mistake.met, mistake.by) == (3, 2, "hook rule.sh")
    assert mistake.lesson == "Write under output/."


def test_what_the_guard_refuses_that_was_learned_from_it_is_the_same_mistake() -> None:
    tried = [row(4, "b", source="guard", guard=NAME, why="", stage="experiment")]
    blocked = [row(n, "c", source="guard", guard=NAME, why="Refused by a guard.") for n in (5, 6)]
    [mistake] = find_habits([row(1, "a"), row(2, "a"), *tried, *blocked], [learned(1, 2)], {})
    assert [(one.refused, one.tried) for one in mistake.jobs] == [(2, 0), (0, 1), (2, 0)]
    assert mistake.guards == [f"{NAME} (active)"]


def test_in_a_jobs_report_are_its_own_and_those_of_several_jobs() -> None:
    of_other = [row(n, "b", why="Something else.", tool="edit_file") for n in (1, 2)]
    of_many = [row(3, "b"), row(4, "c")]
    own = [row(n, "a", why="Own.", tool="move_file") for n in (5, 6)]
    habits = find_habits([*of_other, *of_many, *own], [], {}, job="a")
    assert {one.tool for one in habits} == {"write_file", "move_file"}
    assert [[job.job for job in one.jobs if job.here] for one in habits] == [["a"], ["a"]]
    assert find_habits([row(1, "a")], [], {}) == []


@pytest.mark.parametrize(
    ("by", "headed"),
    [
        ("gate reply", "A reply"),
        ("person clarification", "A question"),
        ("person rewind", "A phase"),
        ("detector circle", "A phase"),
    ],
)
def test_what_is_no_tool_is_headed_by_what_it_is(by: str, headed: str) -> None:
    page = render_html_page(report(habits=[habit(2).model_copy(update={"tool": "", "by": by})]))
    assert f"{headed} of generalist" in page


def test_of_a_project_they_are_told_once() -> None:
    alone = report()
    assert render_html_page(alone).count("Mistakes that come again") == 1
    bare = report(habits=[])
    whole = ProjectReport(
        status=ProjectStatus(), read=NOON, jobs=[bare, bare], habits=[habit(2, 1)]
    )
    page = render_html_page(whole)
    assert page.count("Mistakes that come again") == 1
    assert page.index("Mistakes that come again") < page.index("<article")
    assert "2 (+ 1 on trial), 1 (+ 1 on trial)" in page

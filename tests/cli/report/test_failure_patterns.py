"""The patterns that are watched for."""

import json
from datetime import UTC, datetime

from cli.report import failure_patterns
from cli.report.checkpoint_facts import failing_commands
from cli.report.report_content import RefusalLine
from tests.cli.report.samples import phase


def test_a_plan_after_each_stretch_of_work_is_as_it_should_be() -> None:
    kinds = ["strategic", "tactical", "strategic", "tactical", "strategic"]
    phases = [phase(n, kind) for n, kind in enumerate(kinds, 1)]
    final = phase(6, "strategic", purpose="final")
    pattern = failure_patterns.planning_only_pattern([*phases, final])
    assert not pattern.found
    assert pattern.figure == "at most 1 strategic in a row; 67% of model calls plan"


def test_plans_that_replace_plans_are_named() -> None:
    phases = [
        phase(1, "strategic", purpose="bootstrap"),
        phase(2, "strategic", purpose="rewind"),
        phase(3, "strategic", purpose="rewind"),
        phase(4),
    ]
    pattern = failure_patterns.planning_only_pattern(phases)
    assert pattern.found
    assert pattern.details == ["phases 1 to 3: bootstrap, rewind, rewind"]
    # What a person sends back is no plan that the agent replaced.
    phases[1] = phase(2, "strategic", purpose="rewind", by="Ann")
    assert not failure_patterns.planning_only_pattern(phases).found


def test_a_job_that_does_next_to_nothing_but_plan_is_found() -> None:
    phases = [phase(1, "strategic", purpose="bootstrap")]
    assert not failure_patterns.planning_only_pattern(phases).found
    idle = failure_patterns.planning_only_pattern(phases, has_work=False)
    assert idle.details == ["no file of the work changed; 10 of 10 model calls planned"]
    kinds = [*(["strategic", "tactical"] * 2), *["strategic"]]
    many = [phase(n, kind) for n, kind in enumerate(kinds, 1)]
    for each in many:
        each.model_calls = 1 if each.kind == "tactical" else 9
    assert failure_patterns.planning_only_pattern(many).details == ["27 of 29 model calls planned"]


def test_a_line_of_the_plan_that_comes_back_is_a_swing() -> None:
    plans = [
        (1, frozenset[str]()),
        (2, frozenset({"green", "black"})),
        (3, frozenset({"green"})),
        (4, frozenset({"green", "white"})),
        (5, frozenset({"green", "black"})),
    ]
    pattern = failure_patterns.swinging_plans_pattern(plans)
    assert pattern.found
    assert pattern.details == ["gone at phase 3, back at 5: black"]
    assert pattern.figure == "1 line came back; 1 went for good"
    # A rewind puts the plan back as well: nobody decided twice.
    assert not failure_patterns.swinging_plans_pattern(plans, {3, 4}).found


def test_a_plan_that_grows_and_shrinks_does_not_swing() -> None:
    plans = [(1, frozenset({"a"})), (2, frozenset({"a", "b"})), (3, frozenset({"b"}))]
    assert not failure_patterns.swinging_plans_pattern(plans).found
    assert not failure_patterns.swinging_plans_pattern([]).found


def test_the_same_refusal_three_times_is_repeated() -> None:
    rows = [
        RefusalLine(kind="gate", by="phase gate", tool="todo_complete", count=3, reason="No list."),
        RefusalLine(kind="tool error", by="edit_file", tool="edit_file", count=4, reason="Twice."),
        RefusalLine(kind="gate", by="phase gate", tool="todo_complete", count=2, reason="Short."),
    ]
    pattern = failure_patterns.repeated_refusals_pattern(rows)
    assert pattern.details == [
        "4 × error of edit_file: Twice.",  # noqa: RUF001
        "3 × phase gate (todo_complete): No list.",  # noqa: RUF001
    ]


def test_self_assessment_beside_what_was_found() -> None:
    def judged(confidence: float | None, unresolved: int, refused: int) -> list[str]:
        return failure_patterns.self_assessment_pattern(
            confidence, unresolved, refused, closed=True
        ).details

    assert judged(0.9, 0, 0) == []
    assert judged(0.4, 3, 2) == []
    assert judged(None, 3, 2) == []
    assert judged(0.9, 2, 0) == ["sure, with 2 unresolved"]
    assert judged(0.3, 0, 0) == ["unsure, and nothing is listed as unresolved"]
    assert judged(1.0, 0, 3) == ["completion was refused 3 times before it was accepted"]
    log = [
        ("make\u2028 test", 1),
        ("ls gone", 2),
        ("pytest -q", 1),
        ("pytest -q", 0),
        ("make", None),
    ]
    failed = failing_commands(
        "\n".join(
            json.dumps(
                {"command": ran, "exit_code": code, "trouble": "" if code is not None else "?"},
                ensure_ascii=False,
            )
            for ran, code in log
        )
        + "\nno json"
    )
    assert failed == ["make test: exit code 1", "make: ?"]
    far = failure_patterns.self_assessment_pattern(0.9, 0, 0, failed, closed=True)
    assert far.details[0] == (
        "sure, though this failed when it was last run: make test: exit code 1"
    )
    assert not failure_patterns.self_assessment_pattern(0.6, 0, 0, failed, closed=True).found
    running = failure_patterns.self_assessment_pattern(None, 0, 5, closed=False)
    assert (running.figure, running.found) == ("the job has not ended", False)


def test_a_completion_with_something_open_was_let_through() -> None:
    assert failure_patterns.premature_completion_pattern([], 3).figure == "0 let through; 3 refused"
    pattern = failure_patterns.premature_completion_pattern(["item S1 is open: water"], None)
    assert (pattern.found, pattern.figure) == (True, "1 let through")


def test_traces_and_reflections_that_help_nobody() -> None:
    time = "2026-03-01 09:00"
    traces = [
        {"guard": "logs", "time": time, "retrieved": 2},
        {"guard": "reflection", "time": time, "retrieved": 0},
        {"guard": "generic reflection", "time": time, "retrieved": 0, "phase": 3, "step": 9},
    ]
    now = datetime(2026, 3, 20, tzinfo=UTC)
    never = failure_patterns.unretrieved_traces_pattern(traces, now)
    assert (never.found, never.figure) == (True, "2 of 3; 33% retrieved")
    assert not failure_patterns.unretrieved_traces_pattern(traces[:1], now).found
    # The traces of a job that has just ended are not yet anything to look into.
    soon = datetime(2026, 3, 2, tzinfo=UTC)
    assert not failure_patterns.unretrieved_traces_pattern(traces, soon).found
    empty = failure_patterns.generic_reflections_pattern(traces)
    assert (empty.figure, empty.details) == ("1 of 2", ["phase 3, step 9"])
    assert not failure_patterns.generic_reflections_pattern(traces[:2]).found

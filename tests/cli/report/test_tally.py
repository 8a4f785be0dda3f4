"""Sums over a job's history, and who refused what."""

import gzip
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from cli.report.history import ActivityResult, StatusChange, parse_history_events
from cli.report.refusals import derive_call_refusal, merge_refusals
from cli.report.tally import MOST_REASONS, Tally, fold_step_bars
from engine.converter import DATA_CONVERTER
from tests.cli.report.samples import at, bar

RECORDED = Path(__file__).parents[2] / "replay" / "histories" / "0.1.0"


async def recorded(name: str) -> Tally:
    """Return the tally of a recorded job over all its runs."""
    tally = Tally()
    for number in range(1, len(list(RECORDED.glob(f"{name}-*.json.gz"))) + 1):
        text = gzip.decompress((RECORDED / f"{name}-{number}.json.gz").read_bytes()).decode()
        events = WorkflowHistory.from_json(name, text).events

        async def stream(events: Any = events) -> AsyncIterator[HistoryEvent]:
            for event in events:
                yield event

        async for one in parse_history_events(stream(), DATA_CONVERTER):
            tally.add_event(one)
    return tally


def call(tool: str = "write_file", **result: Any) -> ActivityResult:
    return ActivityResult(at(1), tool, 2, {"commit": "c", "ok": False} | result)


def model_call(calls: int = 1, **result: Any) -> ActivityResult:
    used = {"model_calls": 1, "prompt_tokens": 100, "completion_tokens": 5, "cost": 0.1}
    defaults = {"usage": used, "calls": [{"tool": "read_file"}] * calls} | result
    return ActivityResult(at(1), "model_call", 2, defaults)


async def test_a_job_over_several_runs_is_one_story() -> None:
    tally = await recorded("continued")
    assert [bar.first for bar in tally.steps] == list(range(1, len(tally.steps) + 1))
    assert tally.usage.prompt_tokens == sum(s.usage.prompt_tokens for s in tally.phases.values())
    assert tally.usage.model_calls >= len(tally.steps)
    assert sorted(tally.phases) == list(range(1, max(tally.phases) + 1))
    assert tally.refused == {}


async def test_a_job_that_went_astray_tells_where() -> None:
    tally = await recorded("steered")
    rows = {(row.kind, row.by): row.count for row in tally.refusals}
    assert rows["phase rule", "unknown tool"] >= 1
    assert any(kind == "reply" for kind, _ in rows)
    assert [wait.reason for wait in tally.waits] == ["credentials", "paused"]
    assert all(wait.ended and wait.ended > wait.started for wait in tally.waits)


@pytest.mark.parametrize(
    ("done", "kind", "by"),
    [
        (call("todo_complete", refused_by="phase end"), "gate", "phase gate"),
        (call("todo_complete", refused_by="judge"), "gate", "judge"),
        (
            call("todo_complete", refused_by="held back"),
            "gate",
            "a call before it that failed or that nobody had read",
        ),
        (call("job_complete", refused_by="completion"), "gate", "completion gate"),
        (call("job_complete", refused_by="review"), "gate", "review"),
        (call("todo_rewind", refused_by="gate"), "gate", "gate of todo_rewind"),
        (call("write_file", refused_by="person"), "person", "a person"),
        (call("write_file", refused_by="nobody"), "person", "nobody in time"),
        (call("todo_complete", error="output/a.md does not exist"), "gate", "todo evidence"),
        (call("write_file", guard="secrets"), "guard", "secrets"),
        (call("deny_call", refused_by="tools"), "phase rule", "unknown tool"),
        (call("deny_call", refused_by="phase"), "phase rule", "phase rule"),
        (call("deny_call", refused_by="stuck"), "phase rule", "stuck detection"),
        (call("deny_call", refused_by="reply"), "guard", "english"),
        (call("read_file", error="There is no file 'a'."), "tool error", "read_file"),
    ],
)
def test_who_refused_a_call(done: ActivityResult, kind: str, by: str) -> None:
    refusal = derive_call_refusal(done, "english")
    assert refusal
    assert (refusal.kind, refusal.by) == (kind, by)


def test_a_call_that_went_well_or_asks_a_person_is_no_refusal() -> None:
    assert derive_call_refusal(call(ok=True)) is None
    assert derive_call_refusal(call(guard="careful", asks="May it?")) is None


def test_a_guard_of_an_end_refuses_the_call_after_it() -> None:
    tally = Tally()
    judged = {"guard": "no-rush", "refusal": "Not yet."}
    for _ in range(2):
        tally.add_event(ActivityResult(at(1), "judge_ending", 2, judged))
        tally.add_event(call("job_complete", refused_by="completion"))
        judged = {"refusal": ""}
    assert [(row.kind, row.by) for row in tally.refusals] == [
        ("gate", "completion gate"),
        ("guard", "no-rush"),
    ]


def test_what_talks_and_what_is_refused_is_counted_by_phase() -> None:
    tally = Tally()
    tally.add_event(model_call(0, verdict="claims"))
    tally.add_event(model_call())
    tally.add_event(call(error="No such file: a", error_fingerprint="m"))
    tally.add_event(model_call())
    tally.add_event(call(error="No such file: b", error_fingerprint="m"))
    tally.add_event(call(guard="secrets", error="That is a key."))
    refusals = [(row.count, row.by, row.first_step, row.last_step) for row in tally.refusals]
    assert refusals == [
        (2, "write_file", 2, 3),
        (1, "a reply that claims to be done", 1, 1),
        (1, "secrets", 3, 3),
    ]
    assert tally.phases[2].refusals == 2
    used = tally.phases[2].usage
    assert (used.sent_calls, used.tool_calls, used.refused_calls, used.failed_calls) == (2, 2, 1, 2)
    tally.add_event(call("deny_call", refused_by="tools"))
    # A call that reached no tool does not count as run, here as in the job.
    assert (used.tool_calls, used.refused_calls) == (2, 2)
    assert tally.usage.cost == pytest.approx(0.3)


def test_the_calls_that_end_a_phase_and_the_job_are_among_those_that_were_run() -> None:
    tally = Tally()
    tally.add_event(model_call(2, dropped=1))
    tally.add_event(ActivityResult(at(1), "transition", 2, {"usage": {"tool_calls": 1}}))
    for status in ("completed", "cancelled"):
        closed = {"result": {"status": status, "usage": {"tool_calls": 9}}}
        tally.add_event(ActivityResult(at(2), "close_job", 2, closed))
    assert (tally.usage.sent_calls, tally.usage.tool_calls) == (3, 2)


def test_credentials_in_a_reason_are_hidden() -> None:
    tally = Tally()
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    tally.add_event(call(error=f"cannot read {key}"))
    [row] = tally.refusals
    assert "a1B2c3" not in row.reason
    assert "cannot read" in row.reason


def test_different_reasons_are_bounded() -> None:
    tally = Tally()
    for number in range(MOST_REASONS + 50):
        tally.add_event(call(error="wrong", error_fingerprint=str(number)))
    assert len(tally.refused) == MOST_REASONS + 1
    assert sum(row.count for row in tally.refusals) == MOST_REASONS + 50
    assert sorted(row.count for row in merge_refusals(tally.refusals)) == [50, MOST_REASONS]


def test_waits_are_from_one_status_to_the_next() -> None:
    tally = Tally()
    for seconds, reason in enumerate(["", "budget", "budget", "paused", ""]):
        status = "waiting" if reason else "running"
        tally.add_event(StatusChange(at(seconds), status, reason))
    waits = [(wait.reason, wait.started, wait.ended) for wait in tally.waits]
    assert waits == [("budget", at(1), at(3)), ("paused", at(3), at(4))]


def test_many_steps_become_few_bars_and_nothing_is_lost() -> None:
    steps = [bar(number) for number in range(1, 10_001)]
    few = fold_step_bars(steps, 160)
    assert len(few) <= 160
    assert (few[0].first, few[-1].last) == (1, 10_000)
    assert all(one.last + 1 == two.first for one, two in pairwise(few))
    assert sum(one.prompt_tokens for one in few) == sum(one.prompt_tokens for one in steps)
    assert few[0].largest_prompt == steps[few[0].last - 1].largest_prompt
    assert fold_step_bars([], 160) == []

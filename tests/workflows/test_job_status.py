"""What people see of a job, tested on its record alone."""

from __future__ import annotations

import json

import pytest

from cli.jobs.job_sheet import render_job_sheet
from protocol.endings import JobResult, Outcome
from protocol.notices import Notice
from protocol.search_attribute_names import NAMES
from protocol.waiting import WaitState, WaitTimer
from tests.workflows.records import record, state
from workflows.inbox import Inbox
from workflows.job_display import (
    job_details_markdown,
    job_memo,
    job_search_attributes,
    preparing_job_memo,
)
from workflows.job_status import job_status_answer, preparing_job_status

WAITING = WaitState(reason="budget", message="The phase has used up its calls.", remedy="Resume.")


def test_a_running_job() -> None:
    job = record(state=state(done=1, plan_position=2, plan_total=4), phases={1: "c0"})
    answer = job_status_answer(
        job, Inbox(notices=[Notice(text="x", topic="refused signal", signal="limit")])
    )
    assert answer["status"] == "running"
    assert [todo["status"] for todo in answer["todos"]] == ["completed", "current", "open"]
    assert answer["plan"] == {"position": 2, "total": 4}
    assert answer["scope"] == {
        "original": 2, "completed": 0, "added": 0, "dropped": 0, "open": 2,
        "steps": 0, "steps_completed": 0,
    }  # fmt: skip
    assert answer["checkpoints"] == [{"phase": 1, "id": "c0"}]
    assert answer["notices"] == [{"text": "x", "topic": "refused signal", "signal": "limit"}]
    assert json.loads(json.dumps(answer)) == answer


def test_what_was_received_during_a_step_is_named() -> None:
    inbox = Inbox()
    inbox.put("pause", ())
    answer = job_status_answer(record(), inbox)
    assert answer["unread"] == ["pause"]
    sheet = render_job_sheet(answer, None)
    assert "received, and read after the step in flight: pause" in sheet


def test_a_waiting_job_says_for_what_and_what_to_do() -> None:
    job = record(waiting=WAITING)
    assert job_status_answer(job, Inbox())["waiting_for"] == "budget"
    assert job_memo(job)["status"] == "waiting: budget"
    for words in ("budget", WAITING.message, WAITING.remedy):
        assert words in job_details_markdown(job, [])


def test_the_memo_of_a_start_stays_within_what_temporal_takes() -> None:
    cups = "\N{TEACUP WITHOUT HANDLE}" * 500
    memo = preparing_job_memo({"title": cups, "agent": cups}, "waiting: dependency", cups)
    assert len(json.dumps(memo, ensure_ascii=False).encode()) < 2048


@pytest.mark.parametrize("outcome", ["completed", "cancelled", "failed"])
def test_a_job_that_ended_shows_how(outcome: Outcome) -> None:
    job = record(result=JobResult(status=outcome, summary="all", deliverables=["a.md"]))
    answer = job_status_answer(job, Inbox())
    assert answer["status"] == outcome
    assert "current" not in {todo["status"] for todo in answer["todos"]}
    assert f"**{outcome}**" in job_details_markdown(job, [])
    assert "`a.md`" in job_details_markdown(job, [])


def test_details_show_the_list_the_place_and_the_notices() -> None:
    job = record(state=state("work", done=1, plan_position=2, plan_total=4))
    text = job_details_markdown(job, [Notice(text="moved to lost+found: x")])
    for words in ("☑", "▶", "☐", "plan 2 of 4", "phase 2".title(), "moved to lost+found: x"):
        assert words in text


def test_the_memo_says_it_in_a_line() -> None:
    memo = job_memo(record(state=state("work", done=2)))
    assert memo["state"] == "phase 2 (tactical) Look, 2/3 todos"
    assert all("\n" not in value for value in memo.values())


@pytest.mark.parametrize(
    ("registered", "expected"), [([], []), (list(NAMES), NAMES), ([NAMES[0], "Other"], NAMES[:1])]
)
def test_only_registered_attributes_are_set(registered: list[str], expected: list[str]) -> None:
    job = record(search_attributes=registered)
    assert set(job_search_attributes(job, job_memo(job))) == set(expected)


def test_a_wait_under_way_says_until_when() -> None:
    job = record(timer=WaitTimer(started=1_772_355_000.0, ends=1_772_355_600.0), nudges=2)
    assert job_status_answer(job, Inbox())["waits_until"] == "2026-03-01T09:00:00Z"
    assert job_status_answer(job, Inbox())["nudges"] == 2
    assert "waits until 2026-03-01T09:00:00Z" in job_details_markdown(job, [])
    assert job_status_answer(record(), Inbox())["waits_until"] is None


def test_before_a_job_has_begun_its_status_has_the_keys_that_scripts_rely_on() -> None:
    needed = (
        "agent model status waiting_for phase plan todos usage scope refusals rewinds checkpoint "
        "checkpoints result"
    )
    status = preparing_job_status(Inbox(), None)
    assert set(needed.split()) <= set(status)
    assert set(status["usage"]) >= {"model_calls", "tool_calls", "prompt_tokens", "cost"}
    assert set(status["scope"]) >= {"original", "completed", "added", "dropped", "open"}

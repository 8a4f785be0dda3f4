"""What people see of a job, tested on its record alone."""

import json

import pytest

from cli.jobs.outline_text import outline_sheet, status_outline
from protocol.contract import ContractRow
from protocol.current_notices import current_notice_lines
from protocol.endings import JobResult, Outcome
from protocol.job_outline import job_outline
from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.search_attribute_names import MODEL, NAMES
from protocol.waiting import WaitState, WaitTimer
from tests.workflows.records import record, state
from workflows.jobs.job_display import (
    job_memo,
    preparing_job_memo,
)
from workflows.jobs.job_status import job_status_answer, preparing_job_status
from workflows.runtime.inbox import Inbox
from workflows.runtime.web_display import outline_markdown, search_attributes

WAITING = WaitState(reason="budget", message="The phase has used up its calls.", remedy="Resume.")


def job_details_markdown(job: JobRecord, inbox: Inbox) -> str:
    status = job_status_answer(job, inbox)
    return outline_markdown(job_outline(status, current_notice_lines(status)))


def memo(job: JobRecord) -> dict[str, str]:
    status = job_status_answer(job, Inbox())
    return job_memo(status, job_outline(status, []))


def test_a_running_job() -> None:
    job = record(state=state(done=1, plan_position=2, plan_total=4), phases={1: "c0"})
    answer = job_status_answer(
        job, Inbox(notices=[Notice(text="x", topic="refused signal", signal="limit")])
    ).model_dump(mode="json")
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
    assert answer.unread == ["pause"]
    sheet = outline_sheet(status_outline(answer))
    assert "received, and read after the step in flight: pause" in sheet


def test_a_waiting_job_says_for_what_and_what_to_do() -> None:
    job = record(waiting=WAITING)
    assert job_status_answer(job, Inbox()).waiting_for == "budget"
    assert memo(job)["status"] == "waiting: budget"
    for words in ("budget", WAITING.message, WAITING.remedy):
        assert words in job_details_markdown(job, Inbox())


def test_the_memo_of_a_start_stays_within_what_temporal_takes() -> None:
    cups = "\N{TEACUP WITHOUT HANDLE}" * 500
    memo = preparing_job_memo({"title": cups, "agent": cups}, "waiting: dependency", cups)
    assert len(json.dumps(memo, ensure_ascii=False).encode()) < 2048


@pytest.mark.parametrize("outcome", ["completed", "cancelled", "failed"])
def test_a_job_that_ended_shows_how(outcome: Outcome) -> None:
    job = record(result=JobResult(status=outcome, summary="all", deliverables=["a.md"]))
    answer = job_status_answer(job, Inbox())
    assert answer.status == outcome
    assert "current" not in {todo.status for todo in answer.todos}
    assert f"**{outcome}**" in job_details_markdown(job, Inbox())
    assert "- a.md" in job_details_markdown(job, Inbox())


def test_details_show_the_list_the_place_and_the_notices() -> None:
    job = record(state=state("work", done=1, plan_position=2, plan_total=4))
    text = job_details_markdown(job, Inbox(notices=[Notice(text="moved to lost+found: x")]))
    for words in ("☑", "▶", "☐", "plan 2 of 4", "Phase 2", "moved to lost+found: x"):
        assert words in text


def test_the_memo_says_it_in_a_line() -> None:
    short = memo(record(state=state("work", done=2)))
    assert short["state"] == "phase 2 (tactical) Look, 2/3 todos"
    assert all("\n" not in value for value in short.values())


@pytest.mark.parametrize(
    ("registered", "expected"), [([], []), (list(NAMES), NAMES), ([NAMES[0], "Other"], NAMES[:1])]
)
def test_only_registered_attributes_are_set(registered: list[str], expected: list[str]) -> None:
    job = record(search_attributes=registered)
    assert set(search_attributes(memo(job), job.search_attributes, **{MODEL: job.model})) == set(
        expected
    )


def test_a_wait_under_way_says_until_when() -> None:
    job = record(timer=WaitTimer(started=1_772_355_000.0, ends=1_772_355_600.0), nudges=2)
    assert job_status_answer(job, Inbox()).waits_until == "2026-03-01T09:00:00Z"
    assert job_status_answer(job, Inbox()).nudges == 2
    assert "waits until 2026-03-01T09:00:00Z" in job_details_markdown(job, Inbox())
    assert job_status_answer(record(), Inbox()).waits_until is None


def test_before_a_job_has_begun_its_status_has_the_keys_that_scripts_rely_on() -> None:
    needed = (
        "agent model status waiting_for phase plan todos usage scope refusals rewinds checkpoint "
        "checkpoints result"
    )
    status = preparing_job_status(Inbox(), None).model_dump()
    assert set(needed.split()) <= set(status)
    assert set(status["usage"]) >= {"model_calls", "tool_calls", "prompt_tokens", "cost"}
    assert set(status["scope"]) >= {"original", "completed", "added", "dropped", "open"}


def test_details_have_tables_that_texts_cannot_leave_and_that_are_bounded() -> None:
    row = ContractRow(id="S1", item="S1", statement="Cover |\n tea", status="completed", phase=2)
    met = row.model_copy(update={"todo": 3, "verdict": "met", "quote": "green", "files": ["a.md"]})
    dropped = row.model_copy(update={"id": "S2", "status": "dropped", "reason": "no milk"})
    rows = [met, dropped, *[row] * 100]
    result = JobResult(status="completed", statements=102, met=1, contract=rows)
    lines = job_details_markdown(record(result=result), Inbox()).splitlines()
    assert "| Cover \\| tea | S1 | 2.3 | a.md | met | “green” |" in lines
    assert any(line.endswith("| dropped | no milk |") for line in lines)
    assert "and 52 more" in lines
    assert lines[2].startswith("**completed, 1 of 102 statements met, 1 left out** · ")


def test_what_needs_a_person_comes_first_and_the_newest_notice_before_the_others() -> None:
    job = record(
        waiting=WAITING.model_copy(update={"about": {"question": "Why?\n# Not a heading"}})
    )
    names = ("older", "newer")
    settings = [Notice(text=f"the model is set: {name}", topic="model") for name in "ab"]
    notices = [*settings, *(Notice(text=text) for text in names)]
    text = job_details_markdown(job, Inbox(notices=notices))
    # The scope may be long.
    places = ["waiting (budget)", "### Phase", "### Notices", "newer", "older", "### Scope"]
    assert [text.index(each) for each in places] == sorted(text.index(each) for each in places)
    assert "the model is set: a" not in text
    assert "1 settled notice is left out" in text
    assert "\n    # Not a heading" in text

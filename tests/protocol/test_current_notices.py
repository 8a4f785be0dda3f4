"""What `show` prints of a job's notices."""

from typing import Any

import pytest

from protocol.current_notices import current_notice_lines
from protocol.notices import Notice, PersonAct
from protocol.status import JobStatus

REFUSED = {"text": "guard paths refused write_file: no", "topic": "refused call"}
FALLBACK = {"text": "the fallback small answered"}


def act(signal: str, did: str) -> dict[str, Any]:
    return PersonAct(at=1764069603, by="ada", signal=signal, did=did).notice.model_dump()


def shown(*notices: Any, **status: Any) -> list[str]:
    """Return the notices that are shown, oldest first."""
    base = {"step": 30, "phase": {"number": 5, "kind": "tactical"}, "notices": notices}
    lines = current_notice_lines(JobStatus.model_validate({**base, **status}))
    return [line for line in lines if " left out; " not in line][::-1]


def texts(*notices: Any) -> list[str]:
    return [str(Notice.model_validate(each)) for each in notices]


def test_what_the_result_says_of_documents_is_no_notice_as_well() -> None:
    text = "document a.docx: 1 struck passage is left out of the text."
    notice = {"text": text, "topic": "document"}
    assert shown(notice) == [text]
    assert shown(notice, result={"status": "completed"}) == []


@pytest.mark.parametrize(
    ("notice", "waiting", "current"),
    [
        ({**REFUSED, "step": 30}, None, True),
        ({**REFUSED, "step": 29}, None, False),
        ({**REFUSED, "step": 29}, "review", True),
        ({**REFUSED, "step": 9}, "review", False),
        ({**FALLBACK, "step": 25}, None, True),
        ({**FALLBACK, "step": 9}, None, False),
        ({"text": "stuck, told.", "topic": "advice", "step": 25}, None, True),
        ({"text": "stuck, told.", "topic": "advice", "step": 9}, None, False),
        ({"text": "no room", "phase": 4}, None, True),
        ({"text": "no room", "phase": 3}, None, False),
        ({"text": "moved to lost+found: a.md"}, None, True),
    ],
)
def test_what_the_job_has_gone_on_from_is_left_out(
    notice: dict[str, Any], waiting: str | None, current: bool
) -> None:
    assert shown(notice, waiting_for=waiting) == (texts(notice) if current else [])


def test_repeats_are_counted_and_the_newest_is_shown() -> None:
    moved = {"text": "moved to lost+found: a.md"}
    first, *others = [{**REFUSED, "step": step} for step in (28, 29, 30)]
    assert shown(first, moved, *others, waiting_for="review") == [
        "moved to lost+found: a.md",
        "step 30: guard paths refused write_file: no (3 times)",
    ]


def test_a_refused_signal_leaves_once_one_of_its_kind_is_accepted() -> None:
    refused = PersonAct(at=0, signal="limit", did="", refused="no price").notice.model_dump()
    accepted = act("limit", "set limits")
    assert shown(refused) == ["refused: signal limit: no price"]
    assert shown(refused, accepted) == texts(accepted)
    assert shown(accepted, refused) == texts(accepted, refused)


def test_of_what_people_did_the_newest_of_each_kind_is_shown() -> None:
    paused, resumed = act("pause", "paused the job"), act("resume", "let the job go on")
    assert texts(paused) == ["ada paused the job at 2025-11-25 11:20:03 UTC"]
    assert shown(paused, resumed, paused, resumed) == texts(resumed)
    assert shown(paused, resumed, paused) == texts(resumed, paused)
    settings = [{"text": f"the model is set: {name}", "topic": "model"} for name in "ab"]
    assert shown(*settings) == ["the model is set: b"]


def test_a_folder_that_lacked_steps_is_left_out_once_the_job_goes_on() -> None:
    lacks = {"text": "the folder may lack the last steps: no space", "topic": "folder"}
    resumed = act("resume", "let the job go on")
    assert shown(lacks) == texts(lacks)
    assert shown(lacks, resumed) == texts(resumed)
    assert shown(resumed, lacks) == texts(resumed, lacks)


def test_how_many_are_left_out_is_told() -> None:
    status = {"step": 30, "notices": [{"text": "no reflection.", "step": 1}, {"text": "moved: a"}]}
    assert current_notice_lines(JobStatus.model_validate(status)) == [
        "moved: a",
        "1 settled notice is left out; `starter.py report` and `show --json` have all",
    ]

"""What `show` prints of a job's notices."""

from typing import Any

import pytest

from cli.jobs.current_notices import render_current_notices

AT = "at 2026-11-25 11:20:03 UTC"


def act(signal: str, did: str, **details: str) -> dict[str, Any]:
    return {"by": "ada", "signal": signal, "did": did, "refused": "", **details}


PEOPLE = [
    act("pause", "paused the job"),
    act("resume", "let the job go on"),
    act("limit", "set limits"),
    act("limit", "set limits", refused="signal limit: no price"),
]


def shown(*notices: str, **status: Any) -> list[str]:
    lines = render_current_notices(
        {"step": 30, "phase": {"number": 5}, "people": PEOPLE, "notices": notices, **status}
    )
    return [line.removeprefix("notice: ") for line in lines if line.startswith("notice: ")]


def test_what_the_result_says_of_documents_is_no_notice_as_well() -> None:
    notice = "document a.docx: 1 struck passage is left out of the text."
    assert shown(notice) == [notice]
    assert shown(notice, result={"status": "completed"}) == []


@pytest.mark.parametrize(
    ("notice", "waiting", "current"),
    [
        ("step 30: guard paths refused write_file: no", None, True),
        ("step 29: guard paths refused write_file: no", None, False),
        ("step 29: guard paths refused write_file: no", "review", True),
        ("step 9: guard paths refused write_file: no", "review", False),
        ("step 25: the fallback small answered", None, True),
        ("step 9: the fallback small answered", None, False),
        ("stuck: step 25, advised. It reads the same.", None, True),
        ("stuck: step 9, advised. It reads the same.", None, False),
        ("phase 4: no room for its summary", None, True),
        ("phase 3: no room for its summary", None, False),
        ("moved to lost+found: notes/a.md", None, True),
    ],
)
def test_what_the_job_has_gone_on_from_is_left_out(
    notice: str, waiting: str | None, current: bool
) -> None:
    assert shown(notice, waiting_for=waiting) == ([notice] if current else [])


def test_repeats_are_counted_and_the_newest_is_shown() -> None:
    refusal = "step {}: guard paths refused write_file: no"
    moved = "moved to lost+found: a.md"
    notices = [refusal.format(28), moved, refusal.format(29), refusal.format(30)]
    assert shown(*notices, waiting_for="review") == [
        moved,
        "step 30: guard paths refused write_file: no (3 times)",
    ]


def test_a_refused_signal_leaves_once_one_of_its_kind_is_accepted() -> None:
    refused = "refused: signal limit: the price is not known"
    accepted = f"ada set limits {AT}: cost=2"
    assert shown(refused) == [refused]
    assert shown(refused, accepted) == [accepted]
    assert shown(accepted, refused) == [accepted, refused]


def test_of_what_people_did_the_newest_of_each_kind_is_shown() -> None:
    acts = [f"ada paused the job {AT}", f"ada let the job go on {AT}"] * 2
    assert shown(*acts) == [f"ada let the job go on {AT}"]
    assert shown(*acts, acts[0]) == [acts[1], acts[0]]
    settings = ["the model is set: model.name: a -> b", "the model is set: model.name: b -> c"]
    assert shown(*settings) == settings[1:]


def test_a_folder_that_lacked_steps_is_left_out_once_the_job_goes_on() -> None:
    lacks, resumed = "the folder may lack the last steps: no space", f"ada let the job go on {AT}"
    assert shown(lacks) == [lacks]
    assert shown(lacks, resumed) == [resumed]
    assert shown(resumed, lacks) == [resumed, lacks]


def test_how_many_are_left_out_is_told() -> None:
    status = {"step": 30, "notices": ["step 1: no reflection. Away.", "moved to lost+found: a"]}
    assert render_current_notices(status) == [
        "notice: moved to lost+found: a",
        "1 settled notice is left out; `starter.py report` and `show --json` have all",
    ]

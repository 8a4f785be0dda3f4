"""Whether a reflection names anything that the next attempt could act on."""

from pathlib import Path

import pytest

from activities.steps.reflect import (
    ReflectActivity,
    failed_attempt_title,
    is_generic_reflection,
)
from protocol.endings import ReflectRequest
from rehearsal import Reply, Script
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    standing = Standing.begin(tmp_path)
    standing.write("notes/tea", "Green.")
    return standing


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One should plan better.",
        "Be careful and/or plan better, e.g. think first, i.e. before writing.",
        "Check the input/output 3.5 times, 1/2 at least.",
    ],
)
def test_advice_for_any_job_is_generic(job: Standing, text: str) -> None:
    assert is_generic_reflection(job.open(), text)


@pytest.mark.parametrize(
    "text",
    [
        "It was a.md that lacked it.",
        "main.c did not build.",
        "Read ./notes/tea first.",
        "Read documents/ first.",
        "Nothing in src/tea.py was read.",
        "At step 4 nothing was known.",
        "It took edit_file for write_file.",
    ],
)
def test_a_file_a_tool_or_a_step_is_something_to_act_on(job: Standing, text: str) -> None:
    assert not is_generic_reflection(job.open(), text)


async def test_what_an_answer_that_was_taken_back_has_used_counts(job: Standing) -> None:
    request = ReflectRequest(root=job.root.id, commit=job.commit, at=AT, step=1, issue="No tea.")
    with Script(Reply("notes/tea"), Reply("tea " * 400, finish="content_filter")) as script:
        reflect = ReflectActivity(job.root, lambda _: client_for(script)).reflect
        reply = await environment(local=False).run(reflect, request)
    assert reply.failure
    assert (reply.usage.model_calls, reply.usage.completion_tokens > 300) == (1, True)


def test_the_entry_is_titled_with_the_phase_that_failed(job: Standing) -> None:
    """A job of a project that is sent back has begun its next phase before it reflects."""
    snapshot = job.open()
    assert failed_attempt_title(snapshot) == "Phase 2, step 0: Look"
    page = b"# Phase 7: Brew (tactical, completed)\n\nAll.\n"
    snapshot.files = snapshot.files.write("archive/phase_007.md", page)
    assert failed_attempt_title(snapshot) == "Phase 7: Brew (tactical, completed)"

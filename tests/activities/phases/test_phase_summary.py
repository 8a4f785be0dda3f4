"""The turn to the next phase: where the archive page's summary comes from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.phases.transition import Phases
from activities.rehearsal import Cut, Failure, Reply, Script
from protocol.endings import Transitioned, TransitionRequest
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for

SUMMARY = Reply("The leaves were looked at.")
LAST = 4
"""The attempt after which the notes have to do."""


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path)


async def turn(job: Standing, script: Script, attempt: int = 1) -> Transitioned:
    activity = Phases(job.root, lambda _: client_for(script)).transition
    request = TransitionRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, number=3, purpose="final"
    )
    env = environment(local=False, attempt=attempt, at=time.time())
    made: Transitioned = await env.run(activity, request)
    return made


def page(job: Standing, made: Transitioned) -> str:
    return job.open(made.commit).files.read("archive/phase_002.md").decode()


@pytest.mark.parametrize("passing", [Failure(503), Failure(429), Cut(SUMMARY)])
async def test_a_failure_that_may_pass_costs_the_page_no_summary(
    job: Standing, passing: Any
) -> None:
    with Script(passing, SUMMARY) as script:
        with pytest.raises(ApplicationError):
            await turn(job, script)
        made = await turn(job, script, attempt=2)
    assert page(job, made).endswith("## Summary\n\nThe leaves were looked at.\n")


@pytest.mark.parametrize(("answer", "attempt"), [(Failure(400, "no"), 1), (Failure(503), LAST)])
async def test_where_no_summary_can_be_had_the_notes_take_its_place(
    job: Standing, answer: Any, attempt: int
) -> None:
    with Script(answer) as script:
        made = await turn(job, script, attempt)
    assert "No notes were made." in page(job, made)

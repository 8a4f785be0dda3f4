"""The turn to the next phase: where the archive page's summary comes from."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from activities.job.snapshot import Snapshot
from activities.runtime.failures import ATTEMPTS
from activities.steps.transition import TransitionActivity
from protocol.endings import TransitionReply, TransitionRequest
from protocol.requests import LOST_WORKERS
from rehearsal import Cut, Failure, Reply, Script
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for
from workflows.runtime.activity_table import TRANSITION

SUMMARY = Reply("The leaves were looked at.")
LAST = TRANSITION.attempts
"""The attempt after which the notes must do."""


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path)


async def turn(job: Standing, script: Script, attempt: int = 1) -> TransitionReply:
    activity = TransitionActivity(job.root, lambda _: client_for(script)).transition
    request = TransitionRequest(
        root=job.root.id,
        commit=job.commit,
        at=AT,
        step=job.step,
        number=3,
        purpose="final",
        summary=True,
    )
    env = environment(local=False, attempt=attempt, at=time.time())
    policy = RetryPolicy(maximum_attempts=LAST + LOST_WORKERS)
    env.info = dataclasses.replace(env.info, retry_policy=policy)
    reply: TransitionReply = await env.run(activity, request)
    return reply


def page(job: Standing, reply: TransitionReply) -> str:
    return job.open(reply.commit).files.read("archive/phase_002.md").decode()


@pytest.mark.parametrize("passing", [Failure(503), Failure(429), Cut(SUMMARY)])
async def test_a_failure_that_may_pass_costs_the_page_no_summary(
    job: Standing, passing: Any
) -> None:
    with Script(passing, passing, SUMMARY) as script:
        for attempt in (1, LAST - 1):
            with pytest.raises(ApplicationError):
                await turn(job, script, attempt)
        reply = await turn(job, script, LAST)
    assert page(job, reply).endswith("## Summary\n\nThe leaves were looked at.\n")


@pytest.mark.parametrize(("answer", "attempt"), [(Failure(400, "no"), 1), (Failure(503), LAST)])
async def test_where_no_summary_can_be_had_the_notes_take_its_place(
    job: Standing, answer: Any, attempt: int
) -> None:
    with Script(answer) as script:
        reply = await turn(job, script, attempt)
    assert "No notes were made." in page(job, reply)


@pytest.mark.parametrize(("attempt", "final"), [(ATTEMPTS - 1, False), (ATTEMPTS, True)])
async def test_a_disk_is_not_waited_for_as_long_as_an_endpoint(
    job: Standing, monkeypatch: pytest.MonkeyPatch, attempt: int, final: bool
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Snapshot, "save", full)
    with Script(SUMMARY) as script, pytest.raises(ApplicationError, match="No space") as failed:
        await turn(job, script, attempt)
    assert failed.value.non_retryable is final

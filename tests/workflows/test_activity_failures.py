"""After every failure of a step the job waits for a person, who is told what to do."""

import asyncio
from typing import NoReturn

import pytest
from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from protocol.data_model import Data
from protocol.failure_details import mend_detail
from workflows.runtime.activity_calls import ActivityCalls
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.activity_table import SHOW_FOLDER
from workflows.runtime.wait_states import step_failure_wait


def wrapped(
    cause: BaseException | None, state: RetryState = RetryState.NON_RETRYABLE_FAILURE
) -> ActivityError:
    """Wrap a failure as Temporal does for a regular activity."""
    error = ActivityError(
        "Activity task failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="worker",
        activity_type="write_file",
        activity_id="1",
        retry_state=state,
    )
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("kind", "reason", "remedy"),
    [
        ("Credentials", "credentials", "key"),
        ("Credentials", "credentials", "--set model.name=…` gives it another model"),
        ("Endpoint", "endpoint", "endpoint"),
        ("ModelRefused", "endpoint", "request"),
        # Edits are read only while a job is paused.
        ("ContextTooLong", "endpoint", "give the server a larger window"),
        ("Storage", "storage", "space"),
        ("WrongRoot", "storage", "root"),
        ("NewerVersion", "tool", "workers of the earlier version"),
        ("ValueError", "tool", "errors/"),
        ("BadStart", "tool", "errors/"),
    ],
)
@pytest.mark.parametrize("local", [True, False])
def test_typed_failures(kind: str, reason: str, remedy: str, local: bool) -> None:
    cause = ApplicationError("it broke", type=kind)
    failed = StepFailed("write_file", cause if local else wrapped(cause))
    waiting = step_failure_wait(failed)
    assert failed.kind == kind
    assert waiting.reason == reason
    assert waiting.message == "write_file: it broke"
    assert remedy in waiting.remedy
    assert "resume" in waiting.remedy or kind == "ContextTooLong"


def test_what_a_failure_says_to_mend_is_the_remedy() -> None:
    cause = ApplicationError("No key.", mend_detail("Set a key"), type="Credentials")
    waiting = step_failure_wait(StepFailed("model_call", cause))
    assert waiting.message == "model_call: No key."
    assert waiting.remedy.startswith("Set a key, then resume the job; `starter.py resume JOB --set")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError("late", type=TimeoutType.HEARTBEAT, last_heartbeat_details=[]), "Timeout"),
        (wrapped(None), "Unknown"),
        (ApplicationError("odd"), "Unknown"),
    ],
)
def test_other_failures_park_as_well(error: FailureError, kind: str) -> None:
    failed = StepFailed("tool", error)
    assert failed.kind == kind
    assert failed.message
    assert step_failure_wait(failed).reason == "tool"


def test_messages_are_bounded() -> None:
    failed = StepFailed("tool", wrapped(ApplicationError("x" * 100_000, type="Storage")))
    assert len(step_failure_wait(failed).message) < 900


@pytest.mark.parametrize(
    ("state", "raised"),
    [
        # Its worker was lost after the cancellation, and no person is asked about that.
        (RetryState.CANCEL_REQUESTED, asyncio.CancelledError),
        (RetryState.MAXIMUM_ATTEMPTS_REACHED, StepFailed),
    ],
)
async def test_a_cancelled_call_whose_worker_was_lost_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, state: RetryState, raised: type[BaseException]
) -> None:
    late = TimeoutError("late", type=TimeoutType.HEARTBEAT, last_heartbeat_details=[])

    async def fails(*_: object, **__: object) -> NoReturn:
        raise wrapped(late, state)

    monkeypatch.setattr(workflow, "execute_activity", fails)
    with pytest.raises(raised):
        await ActivityCalls().run_activity(SHOW_FOLDER, Data(), "")

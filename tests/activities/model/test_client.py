"""How long a failure is kept from people: by the server's clock, not by this host's."""

import dataclasses
import time
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.exceptions import ApplicationError

from activities.model.client import apply_endpoint_patience
from config.schema.model_settings import ModelConfig
from tests.activities.standing import environment

MODEL = ModelConfig(name="m", patience_seconds=600)
YEAR = 365 * 86_400


def told(*, since: float, began: float = 0.0, ahead: float = 0.0) -> ApplicationError:
    """Return the failure shown after a temporary error of which the endpoint asks to wait 10 s.

    Args:
        since: Seconds from the first attempt to this one, on the server.
        began: How long ago this one began.
        ahead: How far the server's clock is ahead of ours.
    """
    env = environment(local=False)
    first = datetime.now(UTC) + timedelta(seconds=ahead)
    env.info = dataclasses.replace(
        env.info,
        scheduled_time=first,
        current_attempt_scheduled_time=first + timedelta(seconds=since),
    )
    error = ApplicationError("away", next_retry_delay=timedelta(seconds=10))
    retry_error: ApplicationError = env.run(
        apply_endpoint_patience, error, MODEL, time.monotonic() - began
    )
    return retry_error


@pytest.mark.parametrize("ahead", [-YEAR, 0, YEAR])
def test_patience_is_measured_on_the_server(ahead: float) -> None:
    assert not told(since=0, ahead=ahead).non_retryable
    assert not told(since=500, ahead=ahead).non_retryable
    assert told(since=600, ahead=ahead).non_retryable


def test_what_the_attempt_itself_took_counts_as_well() -> None:
    assert not told(since=300, began=250).non_retryable
    assert told(since=300, began=300).non_retryable

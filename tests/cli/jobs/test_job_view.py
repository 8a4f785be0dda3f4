"""What `show` reads from Temporal's description of a job."""

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.workflow.v1 import PendingActivityInfo

from cli.jobs.job_view import retry_delay_text

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("delay", "text"),
    [(timedelta(minutes=2), " in 120 s"), (timedelta(seconds=-3), ""), (None, "")],
)
def test_the_delay_of_the_next_attempt_is_named(delay, text):
    activity = PendingActivityInfo(attempt=3)
    if delay is not None:
        activity.next_attempt_schedule_time.FromDatetime(NOW + delay)
    assert retry_delay_text(activity, NOW) == text

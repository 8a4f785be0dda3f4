"""What a pause or a resume does to the call in flight.

A pause takes effect during a model call, whose reply is kept back until the job goes on. But a call
whose endpoint fails is retried for minutes without a reply, and a resume with other settings may be
what makes it succeed, so it is given up. A retry whose reply is coming in is not.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from temporalio.exceptions import ApplicationError, FailureError

from protocol.failure_details import helps_detail
from protocol.job_record import JobRecord
from protocol.requests import WatchRetriesRequest
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows.rules import endpoint_remedies
from workflows.runtime import wait_states
from workflows.runtime.activity_calls import ActivityCalls, run_watch
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.activity_table import WATCH_RETRIES
from workflows.runtime.inbox import Inbox


@dataclass
class RetryWatch:
    """Watches one step of a job."""

    job: JobRecord
    calls: ActivityCalls
    inbox: Inbox
    hold: Callable[[], Coroutine[Any, Any, bool]]
    waiting: WaitState | None = None
    """How the job waits for the endpoint of the step; None if that is not known to fail."""
    unfinished: dict[str, Usage] = field(default_factory=dict)
    """What replies that broke off have used in failed attempts, by activity id."""

    @property
    def is_due(self) -> bool:
        """Whether a pause or a resume comes during a call that outlasts failures."""
        return bool(self.calls.outlasting) and (
            self.job.pausing is not None or self.inbox.has_halt()
        )

    @property
    def gives_up(self) -> bool:
        """Whether the call is being retried."""
        return self.waiting is not None

    @property
    def may_hold(self) -> bool:
        """Whether a pause comes."""
        return any(received.signal == "pause" for received in self.inbox.signals)

    async def look(self) -> None:
        """Ask the server until the call is retried."""
        job = self.job
        before = job.waiting if job.waiting and job.waiting.trying else None
        with suppress(FailureError):
            request = WatchRetriesRequest(failing=before is not None)
            retried = await run_watch(WATCH_RETRIES, "watch the call for retries", request)
            error = ApplicationError(retried.message, helps_detail(retried.helps), type="Endpoint")
            failed = StepFailed(retried.activity, error)
            self.unfinished = retried.unfinished
            self.waiting = before or endpoint_remedies.wait_with_remedy(
                wait_states.temporary_failure_wait(failed), job, failed
            )

"""Call activities with time limits, retries and typed failures. Nothing here decides anything."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    FailureError,
    RetryState,
    TimeoutType,
    is_cancelled_exception,
)
from temporalio.exceptions import TimeoutError as AttemptTimeoutError
from temporalio.workflow import ActivityCancellationType

from protocol.data_model import Data
from protocol.errors import Interruption
from protocol.job_record import JobRecord
from protocol.prepare_requests import CancelStartRequest
from protocol.requests import LOST_WORKERS
from protocol.step_summary import StepSummary
from protocol.usage import Usage
from workflows.runtime.activity_failures import StepFailed, is_called_workflow_gone
from workflows.runtime.activity_table import CANCEL_START, MODEL_CALL, Activity, R

HEARTBEAT = timedelta(seconds=20)
"""After so long without a heartbeat an attempt's worker counts as lost. The profile of the worker
may shorten it (`engine.service`)."""
GIVE_UP = timedelta(seconds=2)
"""How long a step that was given up may take to end. Its worker hears of it at once, or else
with the answer to its next heartbeat, which nobody waits for."""
LOOK = timedelta(seconds=1)
"""How long a pause waits to hear whether the call in flight is only retried."""
TEN_MINUTES = 10 * 60
TIME_LIMIT = "TemporalTimeout:StartToClose"
"""The server's name for an attempt that reached its time limit."""
GONE = "it has ended"
"""Why a signal did not reach a closed workflow."""
_CANCEL_REQUESTED = RetryState.CANCEL_REQUESTED
"""The call failed after it was given up: its worker was lost, or it says what its replies have
used. It counts as cancelled.
"""


async def _execute_activity(
    row: Activity[R], request: Data, summary: str, *, seconds: int, attempts: int
) -> R:
    """Schedule an activity; that of a tool again after its time limit, as often as it may fail."""
    policy = RetryPolicy(
        # Failures carry their own delay (`activities.runtime.failures`). This policy is for
        # attempts whose worker is lost: the first retry comes at once.
        initial_interval=timedelta(milliseconds=100),
        maximum_interval=timedelta(seconds=60),
        maximum_attempts=attempts + LOST_WORKERS if attempts else 0,
        non_retryable_error_types=[TIME_LIMIT] if row.is_tool else None,
    )
    tries = 0
    while True:
        tries += 1
        try:
            reply: R = await workflow.execute_activity(
                row.name,
                request,
                result_type=row.reply,
                start_to_close_timeout=timedelta(seconds=seconds),
                heartbeat_timeout=HEARTBEAT,
                retry_policy=policy,
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=summary,
            )
            return reply
        except ActivityError as error:
            cause = error.cause
            limited = (
                isinstance(cause, AttemptTimeoutError) and cause.type == TimeoutType.START_TO_CLOSE
            )
            if not (row.is_tool and limited) or tries >= attempts:
                raise


class StepInterrupted(Interruption):
    """The step in flight was given up for a signal; nothing of it counts but what it has used."""


@dataclass
class _Step:
    """A step in flight."""

    held: bool = False
    """Whether what it waits for is kept back, since the job is paused."""
    abandoned: bool = False
    """Whether it did not end in time once it was given up."""


_STEP: contextvars.ContextVar[_Step | None] = contextvars.ContextVar("step", default=None)


class StepWatch(Protocol):
    """Finds out whether a step in flight may be given up although nothing is urgent."""

    @property
    def is_due(self) -> bool:
        """Whether somebody would have it given up."""

    @property
    def gives_up(self) -> bool:
        """Whether it may be given up."""

    @property
    def may_hold(self) -> bool:
        """Whether somebody would have the job paused while a model call goes on."""

    async def look(self) -> None:
        """Find out; this may take as long as the step."""

    async def hold(self) -> bool:
        """Pause the job; return whether the step is to be given up after the pause."""


class ActivityCalls:
    """Calls regular and local activities."""

    def __init__(self) -> None:
        self.may_continue_as_new = False
        """Whether the present workflow task has run no local activity.

        Otherwise continue-as-new is unsafe: if a signal arrives meanwhile, the server discards the
        task, and its local activities would run a second time.
        """
        self.outlasting = 0
        """Number of activities in flight that outlast failures of their endpoint."""
        self.given_up: dict[str, Usage] = {}
        """What the replies of calls have used that were given up, by activity id, until it is
        counted; nothing for a call that did not say."""
        self._given_up: asyncio.Task[Any] | None = None
        """The step given up last. The call that it waits for may still succeed."""
        self.asking = 0
        """Number of model calls in flight that reply to the conversation."""
        self.holding = False
        """Whether the job is paused during a step."""
        self._local = 0
        """Number of local activities in flight, which end by themselves at once."""

    async def run_activity(
        self,
        row: Activity[R],
        request: Data,
        summary: str,
        *,
        seconds: int = 0,
        attempts: int | None = None,
    ) -> R:
        """Run a regular activity.

        Args:
            row: Its row in the activity table.
            request: Its argument.
            summary: The line that Temporal Web shows.
            seconds: Time limit of an attempt, if the row has none.
            attempts: Overrides the row's; 0 means unlimited.
        """
        attempts = row.attempts if attempts is None else attempts
        self._check_not_given_up()
        step = _STEP.get() or _Step()
        self.outlasting += row.outlasts_endpoint
        self.asking += row is MODEL_CALL
        try:
            reply = await _execute_activity(
                row, request, summary, seconds=seconds or row.seconds, attempts=attempts
            )
            await self._await_turn(step, row.name, getattr(reply, "usage", Usage()))
            return reply
        except FailureError as error:
            cancelled, failed = is_cancelled_exception(error), StepFailed(row.name, error)
            await self._await_turn(step, row.name, failed.unfinished)
            if isinstance(error, ActivityError) and (
                cancelled or error.retry_state == _CANCEL_REQUESTED
            ):
                self.given_up[error.activity_id] = failed.unfinished
                if not cancelled:
                    raise asyncio.CancelledError from error
            if cancelled:
                raise
            raise failed from error
        finally:
            if not step.abandoned:
                self.outlasting -= row.outlasts_endpoint
                self.asking -= row is MODEL_CALL
            self.may_continue_as_new = True

    async def run_local_activity(
        self,
        row: Activity[R],
        request: Data,
        summary: str,
        *,
        seconds: int = 0,
        attempts: int | None = None,
    ) -> R:
        """Run a local activity; the arguments are those of `run_activity`."""
        self._check_not_given_up()
        self.may_continue_as_new = False
        self._local += 1
        try:
            reply: R = await workflow.execute_local_activity(
                row.name,
                request,
                result_type=row.reply,
                start_to_close_timeout=timedelta(seconds=seconds or row.seconds),
                retry_policy=RetryPolicy(
                    maximum_attempts=row.attempts if attempts is None else attempts
                ),
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=summary,
            )
            return reply
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            raise StepFailed(row.name, error) from error
        finally:
            self._local -= 1

    async def run_interruptible(
        self,
        step: Coroutine[Any, Any, Any],
        urgent: Callable[[], bool],
        watch: StepWatch | None = None,
    ) -> None:
        """Run a step, but give it up as soon as an urgent signal comes, or the watch allows it.

        Raises:
            StepInterrupted: it was given up.
        """
        in_flight = _Step()
        before = _STEP.set(in_flight)
        task = asyncio.create_task(step)
        _STEP.reset(before)
        try:
            if watch:
                await self._watch_step(watch, in_flight, lambda: task.done() or urgent())
            else:
                await workflow.wait_condition(lambda: task.done() or urgent())
        except (asyncio.CancelledError, Interruption):
            await self._give_up(task, in_flight)
            raise
        given_up = not task.done()
        if given_up and not await self._give_up(task, in_flight):
            raise StepInterrupted
        try:
            task.result()
        except (FailureError, asyncio.CancelledError) as error:
            if given_up and is_cancelled_exception(error):
                raise StepInterrupted from None
            raise

    async def send_signal(self, other: str, signal: str, payload: dict[str, Any]) -> str | None:
        """Send a signal to another workflow; return why it did not arrive."""
        handle: Any = workflow.get_external_workflow_handle(other)
        try:
            await handle.signal(signal, payload)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            return GONE if is_called_workflow_gone(error) else str(error)
        return None

    async def cancel_start(self, reason: str) -> CancelStartRequest:
        """Ask the server to cancel a workflow that has not begun."""
        request = CancelStartRequest(reason=reason[:2000])
        return await self.run_activity(CANCEL_START, request, "cancelled before it began")

    async def _watch_step(self, watch: StepWatch, step: _Step, is_over: Callable[[], bool]) -> None:
        """Wait until the step is over or is to be given up."""
        while True:
            await workflow.wait_condition(lambda: is_over() or watch.is_due)
            if is_over():
                return
            holds = bool(self.asking) and watch.may_hold
            looking = asyncio.create_task(watch.look())
            try:
                await workflow.wait_condition(
                    lambda: is_over() or watch.gives_up, timeout=LOOK if holds else None
                )
                return
            except TimeoutError:
                # Its reply may come in for minutes.
                pass
            finally:
                looking.cancel()
            self.holding = step.held = True
            try:
                if await watch.hold():
                    return
            finally:
                self.holding = step.held = False

    async def _give_up(self, task: asyncio.Task[Any], step: _Step) -> bool:
        """Cancel a step and wait for its end; return whether it came in time."""
        self._given_up = task
        task.cancel()
        await workflow.wait([task], timeout=None if self._local else GIVE_UP.total_seconds())
        if not task.done():
            step.abandoned = True
            self.outlasting = self.asking = 0
            return False
        if not task.cancelled():
            task.exception()  # Retrieve the exception, or asyncio logs it as never retrieved.
        return True

    async def _await_turn(self, step: _Step, name: str, used: Usage) -> None:
        """Keep back what a call brings while the job is paused; for good if nobody waits for it.

        An abandoned step goes no further: even its clean-up must not change what the job has become
        meanwhile. What the call has used counts.
        """
        if not (step.held or step.abandoned):
            return
        try:
            if step.abandoned:
                self.given_up[f"{name} {len(self.given_up)}"] = used
            await workflow.wait_condition(lambda: not (step.held or step.abandoned))
        except asyncio.CancelledError:
            self.given_up[f"{name} {len(self.given_up)}"] = used
            raise

    def _check_not_given_up(self) -> None:
        """A step that was given up must not continue: it might go on to end the job."""
        if self._given_up is not None and asyncio.current_task() is self._given_up:
            raise asyncio.CancelledError


async def run_watch(row: Activity[R], summary: str, *requests: Data) -> R:
    """Run an activity that only watches: its end is of no interest once that is over."""
    reply: R = await workflow.execute_activity(
        row.name,
        args=requests,
        result_type=row.reply,
        start_to_close_timeout=timedelta(seconds=row.seconds),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(milliseconds=100),
            maximum_interval=timedelta(seconds=10),
            maximum_attempts=row.attempts,
        ),
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
        summary=summary,
    )
    return reply


def checkpoint_request_fields(job: JobRecord) -> dict[str, str]:
    """Return the fields of a request that name the job's checkpoint store."""
    return {"root": job.root, **({"remote": job.remote} if job.remote else {})}


def position_request_fields(job: JobRecord) -> dict[str, Any]:
    """Return the fields of a request that name the job's position."""
    return {**checkpoint_request_fields(job), "commit": job.commit, "at": job.at, "step": job.step}


def activity_summary(job: JobRecord, what: str) -> str:
    """Return a line for Temporal Web: `phase 2 · todo 3 · write_file notes/a.md`."""
    phase = job.state.phase
    todo = f"todo {phase.current.id} · " if phase.current else ""
    return str(StepSummary(phase.number, f"{todo}{what}"))


def count_unfinished_replies(job: JobRecord, failed: StepFailed) -> None:
    """Add to a job's usage what a failure says of such replies, at the highest prices.

    Whoever catches a failure counts them, whether or not it goes on: they count once.
    """
    used, failed.unfinished = failed.unfinished, Usage()
    _add_unfinished_usage(job, used)


def count_given_up_replies(
    job: JobRecord, calls: ActivityCalls, retried: Mapping[str, Usage]
) -> None:
    """Add to a job's usage what replies have used whose calls were given up, at the highest prices.

    Args:
        retried: What failed attempts have used, by the id of their activity. It counts for a call
            of which no attempt was in flight, to say what all of them have used.
    """
    for activity_id, used in calls.given_up.items():
        _add_unfinished_usage(job, used if used != Usage() else retried.get(activity_id, used))
    calls.given_up = {}


def _add_unfinished_usage(job: JobRecord, used: Usage) -> None:
    if price := job.limits.price:
        used = used.with_cost(price.max_cost(used.prompt_tokens, used.completion_tokens))
    job.add_usage(used)

"""The trial: runs jobs under several configurations and reports how each of them ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import (
    ActivityCancellationType,
    ChildWorkflowCancellationType,
    ParentClosePolicy,
)

from protocol.endings import JobResult
from protocol.payloads import CancelSignal, InvalidPayload, read_signal_payload, read_start_payload
from protocol.short_text import one_line
from protocol.trial import (
    RunStatus,
    TrialLimits,
    TrialRun,
    TrialStart,
    TrialStatus,
    WatchTrialReply,
    WatchTrialRequest,
    trial_progress_line,
)
from workflows.activity_calls import HEARTBEAT, is_called_workflow_gone
from workflows.activity_table import WATCH_TRIAL
from workflows.cancellation import is_cancelled
from workflows.project_steps import Child

EXAMPLE = '{"start": {"agent": "…"}, "configurations": {"now": {}, "new": {…}}, "runs": 5}'

CANCELLED = "the trial was cancelled"


@workflow.defn(name="Trial")
class Trial:
    """Compares configurations. Input: see `protocol.trial.TrialStart`."""

    def __init__(self) -> None:
        self._runs: list[TrialRun] = []
        self._children: dict[str, Child] = {}
        self._waits: dict[str, float] = {}
        """Since when a run waits for a person, by job."""
        self._reached = ""
        """The limit that the runs have reached together."""
        self._cancellation = CANCELLED
        """Who cancelled the trial, and why."""
        self._stopped = False
        self._is_over = False
        self._memo: dict[str, str] = {}
        self._start: TrialStart | None = None
        self._main: asyncio.Task[Any] | None = None

    @workflow.run
    async def run(self, *values: Any) -> dict[str, Any]:
        """Run every job and return how each ended."""
        try:
            start = read_start_payload(TrialStart, values, "trial", EXAMPLE)
        except InvalidPayload as wrong:
            raise ApplicationError(str(wrong), non_retryable=True) from None
        self._start = start
        trial = workflow.info().workflow_id
        # Alternate configurations, so that changes in the endpoint's speed affect all of them
        # alike.
        self._runs = [
            TrialRun(job=f"{trial}-{name}-{number:02}", configuration=name)
            for number in range(1, start.runs + 1)
            for name in start.configurations
        ]
        self._show_progress()
        slots = asyncio.Semaphore(start.parallel)
        self._main = asyncio.current_task()
        watches = [asyncio.create_task(self._watch_runs(start.limits))]
        if start.limits.seconds:
            watches.append(asyncio.create_task(self._watch_time(start.limits.seconds)))
        tasks = [asyncio.create_task(self._carry_out(start, run, slots)) for run in self._runs]
        try:
            await workflow.wait(tasks)
        except asyncio.CancelledError:
            self._stopped = True
            for run in self._runs:
                if run.status == "pending":
                    run.status, run.reason = "unstarted", CANCELLED
            for job in list(self._children):
                await _cancel_trial_job(job)
            await workflow.wait(tasks)
            if is_cancelled():
                raise
            # The signal ended it, which the server knows nothing of.
        finally:
            for watch in watches:
                watch.cancel()
            self._is_over = True
            self._show_progress()
        for task in tasks:
            task.result()
        return self.status()

    @workflow.signal(name="cancel", description="End the trial, and the runs that have not ended.")
    def cancel(self, *payload: Any) -> None:
        """Cancel the runs that have not ended, and return those that have."""
        # A payload that cannot be read cancels as well: it is only a reason.
        with suppress(InvalidPayload):
            signal = read_signal_payload("cancel", payload)
            assert isinstance(signal, CancelSignal)
            self._cancellation = trial_cancellation_text(signal.reason, signal.by)
        if self._main:
            self._main.cancel()

    @workflow.query(description="How every run of the trial stands.")
    def status(self) -> dict[str, Any]:
        """Return the trial's start, and its runs in the order of their start."""
        if self._start is None:
            return {"trial": True, "agent": "trial", "status": "running", "runs": []}
        return TrialStatus(
            title=self._start.title,
            status=self._status_word(),
            start=self._start.bounded,
            reached=self._reached,
            cancellation=self._cancellation if self._stopped else "",
            runs=self._runs,
        ).model_dump(mode="json")

    def _status_word(self) -> Literal["running", "completed", "cancelled"]:
        if self._stopped:
            return "cancelled"
        return "completed" if self._is_over else "running"

    def _show_progress(self) -> None:
        """Show the trial in Temporal Web, and in lists."""
        assert self._start
        line = trial_progress_line(self._runs)
        memo = {
            "title": self._start.title,
            "agent": "trial",
            "status": self._status_word(),
            "state": line,
        }
        if memo != self._memo:
            self._memo = memo
            workflow.set_current_details(f"**{self._start.title}**\n\n{line}")
            workflow.upsert_memo(memo)

    async def _carry_out(self, start: TrialStart, run: TrialRun, slots: asyncio.Semaphore) -> None:
        async with slots:
            if self._stopped:
                return
            if self._reached:
                run.status, run.reason = "unstarted", self._reached
                return
            began = workflow.time()
            run.status = "running"
            try:
                child: Child = await workflow.start_child_workflow(
                    "Job",
                    start.job_start(run.configuration),
                    id=run.job,
                    result_type=dict,
                    cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                    parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
                )
            except WorkflowAlreadyStartedError:
                run.status, run.reason = "failed", f"there is a job {run.job} already"
                return
            self._children[run.job] = child
            if self._stopped:
                await _cancel_trial_job(run.job)
            overdue = await self._wait_for_end(start, run, child, began)
            if overdue:
                await _cancel_trial_job(run.job)
            ended = await _note_trial_ending(run, child)
            del self._children[run.job]
            run.seconds = workflow.time() - began
            if ended == "completed":
                run.waiting = ""
            elif ended == "cancelled" and self._stopped:
                run.reason = CANCELLED
            elif overdue == "cut":
                run.status, run.reason = "cut", self._reached
            elif overdue == "late":
                run.status, run.reason = "late", _late_trial_run_reason(start, run)
            self._show_progress()

    async def _wait_for_end(
        self, start: TrialStart, run: TrialRun, child: Child, began: float
    ) -> Literal["", "cut", "late"]:
        """Wait for a run; return why it has to be ended, empty if it has ended by itself."""
        while not child.done():
            if self._reached:
                return "cut"
            due, before = began + start.seconds, run.waiting
            if run.waiting and start.limits.wait:
                due = min(due, self._waits[run.job] + start.limits.wait)
            if (seconds_left := due - workflow.time()) <= 0:
                return "late"
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda before=before: (  # type: ignore[misc]
                        child.done() or bool(self._reached) or run.waiting != before
                    ),
                    timeout=seconds_left,
                )
        return ""

    async def _watch_runs(self, limits: TrialLimits) -> None:
        """Learn which runs wait for a person, and when the runs have reached a limit together."""
        waiting: dict[str, str] = {}
        while not self._reached:
            try:
                reply = await _await_trial_news(WatchTrialRequest(limits=limits, waiting=waiting))
            except FailureError as error:
                if is_cancelled_exception(error):
                    return  # the trial is over
                raise
            waiting = reply.waiting
            for run in self._runs:
                if run.status == "running" and run.waiting != waiting.get(run.job, ""):
                    run.waiting = waiting.get(run.job, "")
                    self._waits[run.job] = workflow.time()
            self._reached = self._reached or reply.reached
            self._show_progress()

    async def _watch_time(self, seconds: int) -> None:
        await workflow.sleep(seconds)
        self._reached = self._reached or f"the trial's limit of {seconds:,} seconds was reached"


async def _await_trial_news(request: WatchTrialRequest) -> WatchTrialReply:
    reply: WatchTrialReply = await workflow.execute_activity(
        WATCH_TRIAL.name,
        request,
        result_type=WATCH_TRIAL.reply,
        start_to_close_timeout=timedelta(seconds=WATCH_TRIAL.seconds),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=10)
        ),
        # Its end is of no interest once the trial is over.
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
        summary="watch the runs",
    )
    return reply


def trial_cancellation_text(reason: str, by: str) -> str:
    """Return `the trial was cancelled by ada@host: it takes too long`."""
    who = f" by {by}" if by else ""
    return f"{CANCELLED}{who}" + (f": {one_line(reason, 500)}" if reason else "")


def _late_trial_run_reason(start: TrialStart, run: TrialRun) -> str:
    wait = start.limits.wait
    if run.waiting and wait and run.seconds < start.seconds:
        return f"it waited {wait} s for a person ({run.waiting})"
    waited = f" and waited for a person ({run.waiting})" if run.waiting else ""
    return f"it had not ended after {start.seconds} s{waited}"


async def _note_trial_ending(run: TrialRun, child: Child) -> RunStatus:
    try:
        result = JobResult.model_validate(await child)
    except ChildWorkflowError as error:
        cause: BaseException = error
        while isinstance(cause, FailureError) and cause.cause:
            cause = cause.cause
        run.status = "cancelled" if isinstance(error.cause, CancelledError) else "failed"
        run.reason = str(getattr(cause, "message", None) or cause)[:500]
        return run.status
    run.status = result.status
    run.reason = "" if result.status == "completed" else result.summary[:500]
    run.phases, run.rewinds, run.usage = result.phases, result.rewinds, result.usage
    return run.status


async def _cancel_trial_job(job: str) -> None:
    """Request the cancellation of a job; a job that has already ended is no error."""
    try:
        await workflow.get_external_workflow_handle(job).cancel()
    except FailureError as error:
        if not is_called_workflow_gone(error):
            raise

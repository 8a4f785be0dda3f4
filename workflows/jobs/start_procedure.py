"""The start of a job or project, repeated until its dependencies are there."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

from temporalio import workflow

from protocol.payload_reading import InvalidPayload
from protocol.payloads import ReceivedSignal
from protocol.project_units import ChildReport
from protocol.teams import RUN, SPENT, TEAM, TODAY
from protocol.waiting import WaitState, status_value
from workflows.jobs import job_display, job_status
from workflows.runtime import activity_failures, acts, wait_states
from workflows.runtime.activity_calls import ActivityCalls
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.cancellation import is_cancelled, run_despite_cancellation
from workflows.runtime.inbox import Inbox

R = TypeVar("R")
LONGEST_PAUSE = timedelta(minutes=10)
"""Longest delay between two attempts of a start: a day of them must fit into its history."""

LONGEST_QUOTA_PAUSE = timedelta(minutes=2)
"""The same while its team is over its quota: two days of them fit."""


class StartProcedure:
    """Prepares a job or a project."""

    def __init__(self, steps: ActivityCalls, inbox: Inbox) -> None:
        self._steps = steps
        self._inbox = inbox
        self._memo: dict[str, str] = {}
        self.waiting: WaitState | None = None
        """How the start waits, if it does."""
        self.last_report: ChildReport | None = None
        """The last report to the project, if the job works for one."""

    async def prepare_until_ready(
        self, prepare: Callable[[], Coroutine[Any, Any, R]], *, project: str = "", **memo: str
    ) -> R:
        """Prepare until everything needed is there; return the reply.

        Args:
            project: Id of the project that a job works for.
            memo: Memo fields known before it begins.

        Raises:
            CancelledError: a person cancelled it before that.
            InvalidPayload: the same, and the server could not be asked to cancel it.
            StepFailed: it cannot start.
        """
        self._memo = memo
        if TEAM in memo:
            # The quota counts by it.
            _note({TEAM: memo[TEAM]})
        pause = activity_failures.TRY_AGAIN
        while True:
            try:
                prepared = await self._attempt_start(prepare)
            except StepFailed as failed:
                if not _is_start_failure_fixable(failed):
                    # Without the reason, which is in the failure: a list shows all of it.
                    _note(job_display.preparing_job_memo(self._memo, "failed", ""))
                    raise
                self.waiting = wait_states.start_failure_wait(failed).of_job(
                    workflow.info().workflow_id
                )
                self._show_waiting()
                if project:
                    await self._report_to_project(project, self.waiting)
                with suppress(TimeoutError):
                    await workflow.wait_condition(
                        lambda: bool(self._start_signals()),
                        timeout=pause if self.waiting.trying else None,
                    )
                most = LONGEST_QUOTA_PAUSE if failed.kind == "Quota" else LONGEST_PAUSE
                pause = min(pause * 2, most)
                await self._apply_start_signals()
            else:
                self.waiting = None
                return prepared

    async def _attempt_start(self, prepare: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Make one attempt; give it up when a person cancels, since documents may take long."""

        def find_cancel() -> ReceivedSignal | None:
            return next(
                (received for received in self._start_signals() if received.signal == "cancel"),
                None,
            )

        attempt = asyncio.create_task(prepare())
        # Temporal's own cancellation waits too, until it is known whether there is something to
        # close.
        with suppress(asyncio.CancelledError):
            await workflow.wait_condition(lambda: attempt.done() or find_cancel() is not None)
        if given_up := not attempt.done():
            attempt.cancel()
            await run_despite_cancellation(workflow.wait([attempt]))
        if attempt.cancelled() or attempt.exception() is not None:
            if is_cancelled():
                raise asyncio.CancelledError
            if given_up and (letter := find_cancel()):
                await self._cancel_start(letter)
        return attempt.result()

    def _start_signals(self) -> list[ReceivedSignal]:
        """Handle signals for the start; others stay for the job once it has begun."""
        return [received for received in self._inbox.signals if _is_for_start(received)]

    async def _apply_start_signals(self) -> None:
        signals, requests = self._inbox.signals, self._start_signals()
        for request in requests:
            if request.signal == "cancel":
                await self._cancel_start(request)
        # What was paused before goes on.
        until = max((n for n, each in enumerate(signals, 1) if _is_for_start(each)), default=0)
        applied = [
            each for each in signals[:until] if each.signal == "pause" or _is_for_start(each)
        ]
        signals[:until] = [
            each for each in signals[:until] if each.signal != "pause" and not _is_for_start(each)
        ]
        for received in applied:
            received.act = acts.describe_act(received)
            if received.signal == "resume" and received.payload.get("set"):
                received.act.refused = (
                    "the job has not begun; cancel it and start it with these settings"
                )
                self._inbox.refuse("resume", received.act.refused, received.by)

    async def _cancel_start(self, received: ReceivedSignal) -> NoReturn:
        """Nothing has to be closed, and only the server can end it as cancelled."""
        reason, who = received.payload.get("reason"), f"by {received.by or 'a person'}"
        named = f" ({who})" if received.by else ""
        message = f"cancelled before it began: {f'{reason}{named}' if reason else who}"
        self.waiting, received.act = None, acts.describe_act(received)
        self._inbox.notice(message)
        workflow.set_current_details(message)
        _note(job_display.preparing_job_memo(self._memo, "cancelled", message))
        try:
            await self._steps.cancel_start(reason or who)
        except StepFailed:
            raise InvalidPayload(message) from None
        await workflow.wait_condition(is_cancelled)
        raise asyncio.CancelledError

    async def _report_to_project(self, project_id: str, waiting: WaitState) -> None:
        """Report the wait to the project, which would show the job as working."""
        report = job_status.preparing_job_status_report(waiting, workflow.info().workflow_id)
        if self.last_report and report.news == self.last_report.news:
            return
        self.last_report = report
        if why := await self._steps.send_signal(
            project_id, "report", report.model_dump(mode="json")
        ):
            self._inbox.notice(f"project {project_id} could not be informed: {why}")

    def _show_waiting(self) -> None:
        assert self.waiting
        workflow.set_current_details(
            job_display.preparing_job_markdown(self.waiting, self._inbox.notices)
        )
        word = status_value("waiting", self.waiting.reason)
        _note(job_display.preparing_job_memo(self._memo, word, self.waiting.message))


def _note(memo: dict[str, str]) -> None:
    """Write the memo, and take out of it what the start has set itself."""
    unset = dict.fromkeys((TEAM, "began", SPENT, TODAY))
    workflow.upsert_memo({**unset, **memo, RUN: workflow.info().run_id})


def _is_for_start(received: ReceivedSignal) -> bool:
    return received.signal in ("resume", "cancel") and "job" not in received.payload


def _is_start_failure_fixable(failed: StepFailed) -> bool:
    """Whether a person can fix the failure and the start then continue."""
    return failed.kind in ("Dependency", "Storage", "WrongRoot", "TestsCannotRun", "Quota")

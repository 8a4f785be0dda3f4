"""The runs of a trial: each from its beginning to its end."""

import asyncio
from contextlib import suppress
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

from protocol.limits import Budget
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun
from protocol.usage import Usage
from workflows.runtime.child_jobs import Child
from workflows.trials.trial_display import TrialDisplay
from workflows.trials.trial_jobs import (
    cancel_trial_job,
    note_trial_ending,
    signal_trial_job,
    start_trial_job,
)
from workflows.trials.trial_state import CANCELLED, TrialState


class TrialRuns:
    """Carries out runs side by side."""

    def __init__(self, trial: TrialState, display: TrialDisplay) -> None:
        self._trial = trial
        self._display = display
        self._children: dict[str, Child] = {}

    def begin_all(self, start: TrialStart) -> list[asyncio.Task[None]]:
        """Return a task for each run; as many are at work at once as the start allows."""
        slots = asyncio.Semaphore(start.parallel)
        return [asyncio.create_task(self._carry_out(start, run, slots)) for run in self._trial.runs]

    async def cancel_all(self) -> None:
        """Cancel the runs at work; no other begins."""
        trial = self._trial
        trial.is_stopped = True
        for run in trial.runs:
            if run.status == "pending":
                run.status, run.reason = "unstarted", CANCELLED
        for job in list(self._children):
            await cancel_trial_job(job, trial.cancellation)

    async def _carry_out(self, start: TrialStart, run: TrialRun, slots: asyncio.Semaphore) -> None:
        trial = self._trial
        async with slots:
            if not await self._may_begin(run):
                return
            assert trial.start  # with the limits as they are now
            share = trial.start.share
            run.has_share = share != Budget()
            run.status, began, pause = "running", trial.clock.seconds, trial.pause
            try:
                child = await start_trial_job(start, run, share)
            except WorkflowAlreadyStartedError:
                run.status, run.reason = "failed", f"there is a job {run.job} already"
                run.usage = Usage()
                return
            self._children[run.job] = child
            if trial.is_stopped:
                await cancel_trial_job(run.job, trial.cancellation)
            elif trial.pause and not pause:
                await signal_trial_job(run.job, "pause", {})
            overdue = await self._wait_for_end(start, run, child, began)
            if overdue:
                await cancel_trial_job(run.job, self._overdue_reason(start, run, overdue))
            await note_trial_ending(run, child)
            del self._children[run.job]
            self._note_cause(start, run, overdue)
            self._display.show_progress()

    async def _may_begin(self, run: TrialRun) -> bool:
        """Wait while the trial is paused; return whether the run still begins."""
        trial = self._trial
        await workflow.wait_condition(
            lambda: trial.is_stopped or bool(trial.reached) or not trial.pause
        )
        if trial.reached and not trial.is_stopped:
            run.status, run.reason = "unstarted", trial.reached
        return not (trial.is_stopped or trial.reached)

    def _note_cause(
        self, start: TrialStart, run: TrialRun, overdue: Literal["", "cut", "late"]
    ) -> None:
        """Record why a run ended that did not end by itself."""
        if run.status == "completed":
            run.waiting = ""
        elif run.status == "cancelled" and self._trial.is_stopped:
            run.reason = CANCELLED
        elif overdue:
            run.status, run.reason = overdue, self._overdue_reason(start, run, overdue)

    def _overdue_reason(
        self, start: TrialStart, run: TrialRun, overdue: Literal["cut", "late"]
    ) -> str:
        if overdue == "cut":
            return self._trial.cut_jobs[run.job]
        return late_trial_run_reason(start, run, self._trial.limits.wait)

    async def _wait_for_end(
        self, start: TrialStart, run: TrialRun, child: Child, began: float
    ) -> Literal["", "cut", "late"]:
        """Wait for a run; return why it has to be ended, empty if it has ended by itself.

        Its time stands still while the trial is paused.
        """
        trial = self._trial
        overdue: Literal["", "cut", "late"] = ""
        standstill = 0.0
        while not child.done():
            stands, since = trial.pause is not None, trial.clock.seconds
            before = (run.waiting, trial.pause)
            due = began + standstill + start.seconds
            if run.waiting and (wait := trial.limits.wait):
                due = min(due, trial.waiting_since[run.job] + wait)
            if run.job in trial.cut_jobs:
                overdue = "cut"
                break
            if not stands and due <= since:
                overdue = "late"
                break
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda before=before: (  # type: ignore[misc]
                        child.done()
                        or run.job in trial.cut_jobs
                        or (run.waiting, trial.pause) != before
                    ),
                    timeout=None if stands else due - since,
                )
            if stands:
                standstill += trial.clock.seconds - since
        run.seconds = trial.clock.seconds - began - standstill
        return overdue


def late_trial_run_reason(start: TrialStart, run: TrialRun, wait: int | None) -> str:
    if run.waiting and wait and run.seconds < start.seconds:
        return f"it waited {wait} s for a person ({run.waiting})"
    waited = f" and waited for a person ({run.waiting})" if run.waiting else ""
    return f"it had not ended after {start.seconds} s{waited}"

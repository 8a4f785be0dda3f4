"""The trial: runs jobs under several configurations and reports how each of them ended.

This module has its signals. `trial_runs` carries out the runs, `trial_limits` keeps the limits of
the whole trial, and `trial_state` is what all of them read and change.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.payload_reading import InvalidPayload, read_signal_payload, read_start_payload
from protocol.payloads import CancelSignal
from protocol.short_text import one_line
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun
from workflows.cancellation import is_cancelled
from workflows.trial_display import TrialDisplay
from workflows.trial_jobs import signal_trial_job
from workflows.trial_limits import TrialLimitWatch
from workflows.trial_runs import TrialRuns
from workflows.trial_state import CANCELLED, TrialState
from workflows.wait_states import paused_wait

EXAMPLE = '{"start": {"agent": "…"}, "configurations": {"now": {}, "new": {…}}, "runs": 5}'


@workflow.defn(name="Trial")
class Trial:
    """Compares configurations. Input: see `protocol.trial_status.TrialStart`."""

    def __init__(self) -> None:
        self._trial = TrialState()
        self._display = TrialDisplay(self._trial)
        self._runs = TrialRuns(self._trial, self._display)
        self._limits = TrialLimitWatch(self._trial, self._display)
        self._main: asyncio.Task[Any] | None = None

    @workflow.run
    async def run(self, *values: Any) -> dict[str, Any]:
        """Run every job and return how each ended."""
        try:
            start = read_start_payload(TrialStart, values, "trial", EXAMPLE)
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), non_retryable=True) from None
        self._trial.begin(start, workflow.info().workflow_id)
        self._display.show_progress()
        self._main = asyncio.current_task()
        watches = [
            asyncio.create_task(watch)
            for watch in (self._limits.watch_runs(), self._limits.watch_time())
        ]
        tasks = self._runs.begin_all(start)
        try:
            await workflow.wait(tasks)
        except asyncio.CancelledError:
            await self._runs.cancel_all()
            await workflow.wait(tasks)
            if is_cancelled():
                raise
            # The signal ended it, which the server knows nothing of.
        finally:
            for watch in watches:
                watch.cancel()
            self._trial.is_over = True
            self._display.show_progress()
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
            self._trial.cancellation = trial_cancellation_text(signal.reason, signal.by)
        if self._main:
            self._main.cancel()

    @workflow.signal(name="pause", description="Pause the runs at work; none begins meanwhile.")
    async def pause(self, *payload: Any) -> None:
        """Pause the runs, and the time of the trial."""
        if (signal := self._read_signal("pause", payload)) is None:
            return
        if self._trial.pause:
            self._refuse("pause", "the trial is paused already")
            return
        self._trial.pause = paused_wait(str(signal.get("by") or "")).model_copy(
            update={"remedy": "Send the signal resume, and all its runs go on."}
        )
        self._trial.clock.pause()
        self._display.show_progress()
        await self._signal_runs("pause", signal, self._trial.running)

    @workflow.signal(name="resume", description="Let the runs that are paused or wait go on.")
    async def resume(self, *payload: Any) -> None:
        """Let all runs go on after a pause; else those that wait for what a person has mended."""
        if (signal := self._read_signal("resume", payload)) is None:
            return
        no_resume = ("", "clarification", "approval", "budget")
        waiting = [run for run in self._trial.running if run.waiting not in no_resume]
        if self._trial.pause:
            waiting = self._trial.running
        elif not waiting:
            self._refuse("resume", "neither the trial nor a run of it waits for that")
            return
        self._trial.pause = None
        self._trial.clock.resume()
        self._display.show_progress()
        await self._signal_runs("resume", signal, waiting)

    @workflow.signal(name="limit", description='Set limits of the whole trial: {"tokens": 90000}.')
    async def limit(self, *payload: Any) -> None:
        """Change limits of the trial, for the runs that have not begun."""
        if (signal := self._read_signal("limit", payload)) is None:
            return
        # Signals that came with the start are handled before it.
        await workflow.wait_condition(lambda: self._trial.start is not None)
        limits = {key: value for key, value in signal.items() if key != "by"}
        if problem := self._limits.change_limits(limits):
            self._refuse("limit", problem)
            return
        named = ", ".join(f"{key.replace('_', ' ')} {value:,.10g}" for key, value in limits.items())
        self._trial.add_notice(f"{signal.get('by') or 'a person'} set limits of the trial: {named}")

    @workflow.query(description="How every run of the trial stands.")
    def status(self) -> dict[str, Any]:
        """Return the trial's start, and its runs in the order of their start."""
        return self._display.status_answer()

    def _read_signal(self, name: str, values: tuple[Any, ...]) -> dict[str, Any] | None:
        """Return a signal's payload; None if it cannot be used, which people are told."""
        try:
            payload = read_signal_payload(name, values).model_dump(exclude_unset=True)
            if "phase" in payload:
                raise InvalidPayload('signal limit: a trial has no phases; try {"tokens": 90000}')
            if "set" in payload:
                raise InvalidPayload(
                    "signal resume: set: a trial's configurations stay as they are"
                )
        except InvalidPayload as refusal:
            self._trial.add_notice(f"refused: {refusal}")
            return None
        return payload

    def _refuse(self, signal: str, why: str) -> None:
        self._trial.add_notice(f"refused: signal {signal}: {why}")

    async def _signal_runs(
        self, signal: str, payload: dict[str, Any], runs: list[TrialRun]
    ) -> None:
        for run in runs:
            await signal_trial_job(run.job, signal, payload)


def trial_cancellation_text(reason: str, by: str) -> str:
    """Return `the trial was cancelled by ada@host: it takes too long`."""
    who = f" by {by}" if by else ""
    return f"{CANCELLED}{who}" + (f": {one_line(reason, 500)}" if reason else "")

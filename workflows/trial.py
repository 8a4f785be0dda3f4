"""The trial: runs jobs under several configurations and reports how each of them ended.

This module has its signals. `trial_runs` carries out the runs, `trial_limits` keeps the limits of
the whole trial, and `trial_state` is what all of them read and change.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.workflow import HandlerUnfinishedPolicy

from protocol.errors import SignalRefused
from protocol.notices import PersonAct
from protocol.payload_reading import InvalidPayload, read_signal_payload, read_start_payload
from protocol.payloads import UPDATE, ReceivedSignal
from protocol.short_text import one_line
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun
from workflows.runtime.acts import describe_act
from workflows.runtime.cancellation import is_cancelled
from workflows.runtime.wait_states import paused_wait
from workflows.trials.trial_display import TrialDisplay
from workflows.trials.trial_jobs import signal_trial_job
from workflows.trials.trial_limits import TrialLimitWatch
from workflows.trials.trial_runs import TrialRuns
from workflows.trials.trial_state import CANCELLED, TrialState

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
        self._handlers: dict[str, Callable[[ReceivedSignal], Awaitable[None]]] = {
            "cancel": self._cancel,
            "pause": self._pause,
            "resume": self._resume,
            "limit": self._set_limits,
        }

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

    @workflow.signal(description="End the trial, and the runs that have not ended.")
    async def cancel(self, *payload: Any) -> None:
        await self._take_signal("cancel", payload)

    @workflow.signal(description="Pause the runs at work; none begins meanwhile.")
    async def pause(self, *payload: Any) -> None:
        await self._take_signal("pause", payload)

    @workflow.signal(description="Let the runs that are paused or wait go on.")
    async def resume(self, *payload: Any) -> None:
        await self._take_signal("resume", payload)

    @workflow.signal(description='Set limits of the whole trial: {"tokens": 90000}.')
    async def limit(self, *payload: Any) -> None:
        await self._take_signal("limit", payload)

    @workflow.update(name=UPDATE, unfinished_policy=HandlerUnfinishedPolicy.ABANDON)
    async def apply_signal(self, signal: str, *payload: Any) -> dict[str, Any]:
        """Apply a signal, and return the act."""
        act = await self._take_signal(signal, payload)
        return act.model_dump(exclude_defaults=True)

    @apply_signal.validator
    def check_signal(self, signal: str, *payload: Any) -> None:
        """Refuse what cannot apply."""
        if why := self._refusal_reason(self._read_signal(signal, payload)):
            raise InvalidPayload(why)

    @workflow.query(description="How every run of the trial stands.")
    def status(self) -> dict[str, Any]:
        """Return the trial's start, and its runs in the order of their start."""
        return self._display.status_answer().model_dump(mode="json")

    def _read_signal(self, name: str, values: tuple[Any, ...]) -> ReceivedSignal:
        """Return a signal that a trial can take. Raises InvalidPayload."""
        if name not in self._handlers:
            raise InvalidPayload(f"a trial takes only {', '.join(self._handlers)}")
        payload: dict[str, Any] = {}
        try:
            payload = read_signal_payload(name, values).model_dump(exclude_unset=True)
        except InvalidPayload:
            # One that cannot be read cancels as well: it is only a reason.
            if name != "cancel":
                raise
        if "phase" in payload:
            raise InvalidPayload('a trial has no phases; try {"tokens": 90000}')
        if "set" in payload:
            raise InvalidPayload("set: a trial's configurations stay as they are")
        return ReceivedSignal(signal=name, payload=payload, at=int(workflow.time()))

    def _refusal_reason(self, received: ReceivedSignal) -> str:
        """Return why a signal cannot apply to the trial as it is; empty if it may."""
        if received.signal == "pause" and self._trial.pause:
            return "the trial is paused already"
        if received.signal == "resume" and not (self._trial.pause or self._waiting_runs):
            return "neither the trial nor a run of it waits for that"
        return ""

    async def _take_signal(self, signal: str, values: tuple[Any, ...]) -> PersonAct:
        """Apply a signal; people read what came of it."""
        try:
            received = self._read_signal(signal, values)
        except InvalidPayload as refusal:
            act = PersonAct(at=int(workflow.time()), signal=signal, did="", refused=str(refusal))
        else:
            act = describe_act(received, what="trial")
            try:
                if why := self._refusal_reason(received):
                    raise SignalRefused(why)
                await self._handlers[signal](received)
            except SignalRefused as refusal:
                act.refused = str(refusal)
        self._trial.add_notice(act.notice)
        return act

    @property
    def _waiting_runs(self) -> list[TrialRun]:
        """The runs that wait for what a person has mended."""
        no_resume = ("", "clarification", "approval", "budget")
        return [run for run in self._trial.running if run.waiting not in no_resume]

    async def _cancel(self, received: ReceivedSignal) -> None:
        """Cancel the runs that have not ended, and return those that have."""
        reason = received.payload.get("reason", "")
        self._trial.cancellation = trial_cancellation_text(reason, received.by)
        if self._main:
            self._main.cancel()

    async def _pause(self, received: ReceivedSignal) -> None:
        """Pause the runs, and the time of the trial."""
        self._trial.pause = (
            paused_wait(received.by)
            .model_copy(update={"remedy": "Send the signal resume, and all its runs go on."})
            .of_job(workflow.info().workflow_id)
        )
        self._trial.clock.pause()
        self._display.show_progress()
        await self._signal_runs(received, self._trial.running)

    async def _resume(self, received: ReceivedSignal) -> None:
        """Let all runs go on after a pause; else those that wait for what a person has mended."""
        waiting = self._trial.running if self._trial.pause else self._waiting_runs
        self._trial.pause = None
        self._trial.clock.resume()
        self._display.show_progress()
        await self._signal_runs(received, waiting)

    async def _set_limits(self, received: ReceivedSignal) -> None:
        """Change limits of the trial, for the runs that have not begun."""
        if self._trial.start is None:
            # Signals that came with the start are handled before it.
            await workflow.wait_condition(lambda: self._trial.start is not None)
        limits = {key: value for key, value in received.payload.items() if key != "by"}
        if problem := self._limits.change_limits(limits):
            raise SignalRefused(problem)

    async def _signal_runs(self, received: ReceivedSignal, runs: list[TrialRun]) -> None:
        for run in runs:
            await signal_trial_job(run.job, received.signal, received.payload)


def trial_cancellation_text(reason: str, by: str) -> str:
    """Return `the trial was cancelled by ada@host: it takes too long`."""
    who = f" by {by}" if by else ""
    return f"{CANCELLED}{who}" + (f": {one_line(reason, 500)}" if reason else "")

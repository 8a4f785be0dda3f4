"""The trial: runs jobs under several configurations and reports how each of them ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from protocol.payload_reading import InvalidPayload, read_signal_payload, read_start_payload
from protocol.payloads import CancelSignal
from protocol.short_text import one_line
from protocol.trial_start import TrialLimits, TrialStart
from protocol.trial_status import TrialRun, TrialStatus, WatchTrialRequest, trial_progress_line
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows import trial_shares
from workflows.activity_failures import paused_activity_wait
from workflows.cancellation import is_cancelled
from workflows.project_steps import Child
from workflows.trial_clock import TrialClock
from workflows.trial_runs import (
    await_trial_news,
    cancel_trial_job,
    late_trial_run_reason,
    note_trial_ending,
    share_payload,
    signal_trial_job,
    start_trial_job,
)

EXAMPLE = '{"start": {"agent": "…"}, "configurations": {"now": {}, "new": {…}}, "runs": 5}'

CANCELLED = "the trial was cancelled"
MAX_NOTICES = 20


@workflow.defn(name="Trial")
class Trial:
    """Compares configurations. Input: see `protocol.trial_status.TrialStart`."""

    def __init__(self) -> None:
        self._runs: list[TrialRun] = []
        self._children: dict[str, Child] = {}
        self._waits: dict[str, float] = {}
        """Since when a run waits for a person, by job."""
        self._reached = ""
        """The limit because of which no run begins any more."""
        self._cut: dict[str, str] = {}
        """Jobs to be ended because of a limit, with the limit."""
        self._lost: set[str] = set()
        """Ended jobs that cannot say what they used."""
        self._has_news = True
        """Whether shares may have to be handed out again."""
        self._cancellation = CANCELLED
        """Who cancelled the trial, and why."""
        self._is_out_of_time = False
        self._stopped = False
        self._is_over = False
        self._pause: WaitState | None = None
        self._notices: list[str] = []
        self._memo: dict[str, str] = {}
        self._start: TrialStart | None = None
        self._main: asyncio.Task[Any] | None = None
        self._clock = TrialClock()

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
        watches = [
            asyncio.create_task(watch)
            for watch in (self._watch_runs(), self._watch_time(), self._hand_out_shares())
        ]
        tasks = [asyncio.create_task(self._carry_out(start, run, slots)) for run in self._runs]
        try:
            await workflow.wait(tasks)
        except asyncio.CancelledError:
            self._stopped = True
            for run in self._runs:
                if run.status == "pending":
                    run.status, run.reason = "unstarted", CANCELLED
            for job in list(self._children):
                await cancel_trial_job(job, self._cancellation)
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

    @workflow.signal(name="pause", description="Pause the runs at work; none begins meanwhile.")
    async def pause(self, *payload: Any) -> None:
        """Pause the runs, and the time of the trial."""
        if (signal := self._read_signal("pause", payload)) is None:
            return
        if self._pause:
            self._refuse("pause", "the trial is paused already")
            return
        self._pause = paused_activity_wait(str(signal.get("by") or "")).model_copy(
            update={"remedy": "Send the signal resume, and all its runs go on."}
        )
        self._clock.pause()
        self._show_progress()
        await self._signal_runs("pause", signal, [run.job for run in self._running])

    @workflow.signal(name="resume", description="Let the runs that are paused or wait go on.")
    async def resume(self, *payload: Any) -> None:
        """Let all runs go on after a pause; else those that wait for what a person has mended."""
        if (signal := self._read_signal("resume", payload)) is None:
            return
        no_resume = ("", "clarification", "approval", "budget")
        waiting = [run.job for run in self._running if run.waiting not in no_resume]
        if self._pause:
            waiting = [run.job for run in self._running]
        elif not waiting:
            self._refuse("resume", "neither the trial nor a run of it waits for that")
            return
        self._pause, self._has_news = None, True
        self._clock.resume()
        self._show_progress()
        await self._signal_runs("resume", signal, waiting)

    @workflow.signal(name="limit", description='Set limits of the whole trial: {"tokens": 90000}.')
    async def limit(self, *payload: Any) -> None:
        """Change limits of the trial; shares of its runs follow."""
        if (signal := self._read_signal("limit", payload)) is None:
            return
        # Signals that came with the start are handled before it.
        await workflow.wait_condition(lambda: self._start is not None)
        limits = {key: value for key, value in signal.items() if key != "by"}
        self._set_limits(self._limits.model_copy(update=limits))
        named = ", ".join(f"{key.replace('_', ' ')} {value:,.10g}" for key, value in limits.items())
        self._notice(f"{signal.get('by') or 'a person'} set limits of the trial: {named}")
        lowered = trial_shares.lowered_trial_shares(self._limits, self._runs)
        for run in self._running:
            if (share := lowered.get(run.job)) is not None:
                await self._send_share(run, share)
        self._has_news = True

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
            waiting=None if self._is_over or self._stopped else self._pause,
            notices=self._notices,
            runs=self._runs,
        ).model_dump(mode="json")

    def _status_word(self) -> Literal["running", "waiting", "completed", "cancelled"]:
        if self._stopped:
            return "cancelled"
        if self._is_over:
            return "completed"
        return "waiting" if self._pause else "running"

    def _show_progress(self) -> None:
        """Show the trial in Temporal Web, and in lists."""
        if self._start is None:
            return
        line = trial_progress_line(self._runs)
        word = self._status_word()
        memo = {
            "title": self._start.title,
            "agent": "trial",
            "status": "waiting: paused" if word == "waiting" else word,
            "state": line,
        }
        if memo != self._memo:
            self._memo = memo
            workflow.set_current_details(f"**{self._start.title}**\n\n{line}")
            workflow.upsert_memo(memo)

    @property
    def _limits(self) -> TrialLimits:
        """The limits as they are now, which a person may have changed."""
        assert self._start
        return self._start.limits

    def _set_limits(self, limits: TrialLimits) -> None:
        assert self._start
        self._start = self._start.model_copy(update={"limits": limits})
        if not self._is_out_of_time:
            # Runs that have not given up yet may begin under the new limits.
            self._reached = ""

    @property
    def _running(self) -> list[TrialRun]:
        return [run for run in self._runs if run.status == "running"]

    # Runs

    async def _carry_out(self, start: TrialStart, run: TrialRun, slots: asyncio.Semaphore) -> None:
        async with slots:
            share: dict[str, float] | None = None
            while share is None:
                await workflow.wait_condition(
                    lambda: self._stopped or bool(self._reached) or self._may_begin()
                )
                if self._stopped:
                    return
                if self._reached:
                    run.status, run.reason = "unstarted", self._reached
                    return
                # Another run that waited for the same may have begun with it.
                share = self._first_share() if self._may_begin() else None
            run.share = share
            run.status, began, pause = "running", self._clock.seconds, self._pause
            try:
                child = await start_trial_job(start, run)
            except WorkflowAlreadyStartedError:
                run.status, run.reason = "failed", f"there is a job {run.job} already"
                run.usage, self._has_news = Usage(), True
                return
            self._children[run.job] = child
            if self._stopped:
                await cancel_trial_job(run.job, self._cancellation)
            elif self._pause and not pause:
                await signal_trial_job(run.job, "pause", {})
            overdue = await self._wait_for_end(start, run, child, began)
            if overdue:
                await cancel_trial_job(run.job, self._overdue_reason(start, run, overdue))
            await note_trial_ending(run, child)
            del self._children[run.job]
            self._note_cause(start, run, overdue)
            run.needs, run.lowered, run.released, self._has_news = {}, {}, False, True
            self._show_progress()

    def _first_share(self) -> dict[str, float] | None:
        return trial_shares.first_share(self._limits, self._runs)

    def _may_begin(self) -> bool:
        """Whether a run may begin: runs that wait for more of a limit come first."""
        waits = any(run.needs for run in self._running)
        return not (self._pause or waits) and self._first_share() is not None

    def _note_cause(
        self, start: TrialStart, run: TrialRun, overdue: Literal["", "cut", "late"]
    ) -> None:
        """Record why a run ended that did not end by itself."""
        if run.status == "completed":
            run.waiting = ""
        elif run.status == "cancelled" and self._stopped:
            run.reason = CANCELLED
        elif overdue:
            run.status, run.reason = overdue, self._overdue_reason(start, run, overdue)

    def _overdue_reason(
        self, start: TrialStart, run: TrialRun, overdue: Literal["cut", "late"]
    ) -> str:
        if overdue == "cut":
            return self._cut[run.job]
        return late_trial_run_reason(start, run, self._limits.wait)

    async def _wait_for_end(
        self, start: TrialStart, run: TrialRun, child: Child, began: float
    ) -> Literal["", "cut", "late"]:
        """Wait for a run; return why it has to be ended, empty if it has ended by itself.

        Its time stands still while the trial is paused, and while it waits for a share.
        """
        ended: Literal["", "cut", "late"] = ""
        stood = 0.0
        while not child.done():
            stands, since = self._pause is not None or bool(run.needs), self._clock.seconds
            due, before = began + stood + start.seconds, (run.waiting, bool(run.needs), self._pause)
            if run.waiting and (wait := self._limits.wait):
                due = min(due, self._waits[run.job] + wait)
            if run.job in self._cut:
                ended = "cut"
                break
            if not stands and due <= since:
                ended = "late"
                break
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda before=before: (  # type: ignore[misc]
                        child.done()
                        or run.job in self._cut
                        or (run.waiting, bool(run.needs), self._pause) != before
                    ),
                    timeout=None if stands else due - since,
                )
            if stands:
                stood += self._clock.seconds - since
        run.seconds = self._clock.seconds - began - stood
        return ended

    # Limits of the whole trial

    async def _watch_runs(self) -> None:
        """Learn which runs wait for a person or a share, and what ended runs have used."""
        while True:
            try:
                reply = await await_trial_news(WatchTrialRequest(lost=sorted(self._lost)))
            except FailureError as error:
                if is_cancelled_exception(error):
                    return  # the trial is over
                raise
            self._lost |= set(reply.lost)
            lowered: list[TrialRun] = []
            for run in self._runs:
                if run.status == "running":
                    waiting = reply.waiting.get(run.job, "")
                    if run.waiting != waiting:
                        run.waiting, self._waits[run.job] = waiting, self._clock.seconds
                        run.released = False
                    idle = reply.idle.get(run.job)
                    if idle is not None and trial_shares.release_unused_share(run, idle):
                        lowered.append(run)
                    run.needs = trial_shares.unmet_run_needs(run, reply.needs.get(run.job, {}))
                elif run.usage is None:
                    run.usage = reply.usages.get(run.job)
            for run in lowered:
                # Without it another share was sent meanwhile; an empty one would be no limit.
                if run.lowered:
                    await signal_trial_job(run.job, "share", share_payload(run.lowered))
            self._has_news = True
            self._show_progress()

    async def _hand_out_shares(self) -> None:
        """Give runs more of what is free; end some once all of them wait for more."""
        while True:
            await workflow.wait_condition(lambda: self._has_news)
            self._has_news = False
            for run in self._running:
                if (run.needs and run.job not in self._cut) and (
                    share := trial_shares.larger_share(self._limits, self._runs, run)
                ):
                    run.needs = {}
                    await self._send_share(run, share)
            self._end_without_room()

    def _end_without_room(self) -> None:
        """End the newest run if nothing is left and every run at work waits for more.

        What that run leaves of its share may be enough for an older one.
        """
        running = self._running
        unknown = any(
            run.usage is None and run.share and run.job not in self._lost
            for run in self._runs
            if run.status not in ("running", *trial_shares.NEVER_BEGAN)
        )
        is_open = running or any(run.status == "pending" for run in self._runs)
        if self._pause or unknown or self._has_news or not is_open:
            return
        # One that waits for a person leaves nothing to others, as long as it waits.
        at_work = [run for run in running if not run.released]
        if any(not run.needs or run.job in self._cut for run in at_work):
            return
        if not at_work and (running or self._may_begin()):
            return
        key = trial_shares.scarce_trial_limit(self._limits, self._runs)
        limit = getattr(self._limits, key)
        self._reached = f"the trial's limit of {limit:,.10g} {key.replace('_', ' ')} was reached"
        if at_work:
            self._cut[at_work[-1].job] = self._reached

    async def _send_share(self, run: TrialRun, share: dict[str, float]) -> None:
        run.share, run.lowered, run.released = share, {}, False
        await signal_trial_job(run.job, "share", share_payload(share))

    async def _watch_time(self) -> None:
        """End all runs at the trial's limit on time, which does not pass during a pause."""
        while True:
            before = (self._limits.seconds, self._pause)
            limit, timeout = self._limits.seconds, None
            if limit and not self._pause:
                timeout = limit - self._clock.seconds
                if timeout <= 0:
                    break
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda before=before: (self._limits.seconds, self._pause) != before,  # type: ignore[misc]
                    timeout=timeout,
                )
        self._reached = f"the trial's limit of {limit:,} seconds was reached"
        self._is_out_of_time = True
        self._cut |= {run.job: self._reached for run in self._running}

    # Signals

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
            self._notice(f"refused: {refusal}")
            return None
        return payload

    def _refuse(self, signal: str, why: str) -> None:
        self._notice(f"refused: signal {signal}: {why}")

    def _notice(self, text: str) -> None:
        self._notices = [*self._notices, text[:500]][-MAX_NOTICES:]

    async def _signal_runs(self, signal: str, payload: dict[str, Any], jobs: list[str]) -> None:
        for job in jobs:
            await signal_trial_job(job, signal, payload)


def trial_cancellation_text(reason: str, by: str) -> str:
    """Return `the trial was cancelled by ada@host: it takes too long`."""
    who = f" by {by}" if by else ""
    return f"{CANCELLED}{who}" + (f": {one_line(reason, 500)}" if reason else "")

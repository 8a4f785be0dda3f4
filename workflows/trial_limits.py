"""The limits of a whole trial: shares for its runs, and the end of runs without room or time.

`workflows.trial_shares` computes the shares; here they are sent.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from protocol.trial_status import TrialRun, WatchTrialReply, WatchTrialRequest
from workflows import trial_shares
from workflows.trial_display import TrialDisplay
from workflows.trial_jobs import await_trial_news, share_payload, signal_trial_job
from workflows.trial_state import TrialState

PATCH = "a share that a run gets is shown"
"""Trials that gave shares before this was there replay as they were."""


class TrialLimitWatch:
    """Keeps a trial within its limits."""

    def __init__(self, trial: TrialState, display: TrialDisplay) -> None:
        self._trial = trial
        self._display = display
        self._lost: set[str] = set()
        """Ended jobs that cannot say what they used."""

    async def watch_runs(self) -> None:
        """Learn which runs wait for a person or a share, and what ended runs have used."""
        trial = self._trial
        while True:
            try:
                reply = await await_trial_news(WatchTrialRequest(lost=sorted(self._lost)))
            except FailureError as error:
                if is_cancelled_exception(error):
                    return  # the trial is over
                raise
            self._lost |= set(reply.lost)
            lowered = [run for run in trial.runs if self._note_news(run, reply)]
            for run in lowered:
                # Without it another share was sent meanwhile; an empty one would be no limit.
                if run.lowered:
                    await signal_trial_job(run.job, "share", share_payload(run.lowered))
            trial.has_news = True
            self._display.show_progress()

    def _note_news(self, run: TrialRun, reply: WatchTrialReply) -> bool:
        """Record what is known of a run; return whether to send it a lowered share."""
        if run.status != "running":
            if run.usage is None:
                run.usage = reply.usages.get(run.job)
            return False
        waiting = reply.waiting.get(run.job, "")
        if run.waiting != waiting:
            run.waiting, run.released = waiting, False
            self._trial.waiting_since[run.job] = self._trial.clock.seconds
        idle = reply.idle.get(run.job)
        is_lowered = idle is not None and trial_shares.release_unused_share(run, idle)
        run.needs = trial_shares.unmet_run_needs(run, reply.needs.get(run.job, {}))
        return is_lowered

    async def hand_out_shares(self) -> None:
        """Give runs more of what is free; end some once all of them wait for more."""
        trial = self._trial
        while True:
            await workflow.wait_condition(lambda: trial.has_news)
            trial.has_news = False
            for run in trial.running:
                if (run.needs and run.job not in trial.cut_jobs) and (
                    share := trial_shares.larger_share(trial.limits, trial.runs, run)
                ):
                    run.needs = {}
                    if workflow.patched(PATCH):
                        self._display.show_progress()
                    await self._send_share(run, share)
            self._end_without_room()

    async def change_limits(self, limits: dict[str, Any]) -> None:
        """Change limits of the trial, and lower the shares that they no longer cover."""
        trial = self._trial
        trial.set_limits(trial.limits.model_copy(update=limits))
        lowered = trial_shares.lowered_trial_shares(trial.limits, trial.runs)
        for run in trial.running:
            if (share := lowered.get(run.job)) is not None:
                await self._send_share(run, share)
        trial.has_news = True

    async def watch_time(self) -> None:
        """End all runs at the trial's limit on time, which does not pass during a pause."""
        trial = self._trial
        while True:
            before = (trial.limits.seconds, trial.pause)
            limit, timeout = trial.limits.seconds, None
            if limit and not trial.pause:
                timeout = limit - trial.clock.seconds
                if timeout <= 0:
                    break
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda before=before: (trial.limits.seconds, trial.pause) != before,  # type: ignore[misc]
                    timeout=timeout,
                )
        trial.reached = f"the trial's limit of {limit:,} seconds was reached"
        trial.is_out_of_time = True
        trial.cut_jobs |= {run.job: trial.reached for run in trial.running}

    def _end_without_room(self) -> None:
        """End the newest run if nothing is left and every run at work waits for more.

        What that run leaves of its share may be enough for an older one.
        """
        trial = self._trial
        running = trial.running
        unknown = any(
            run.usage is None and run.share and run.job not in self._lost
            for run in trial.runs
            if run.status not in ("running", *trial_shares.NEVER_BEGAN)
        )
        is_open = running or any(run.status == "pending" for run in trial.runs)
        if trial.pause or unknown or trial.has_news or not is_open:
            return
        # One that waits for a person leaves nothing to others, as long as it waits.
        at_work = [run for run in running if not run.released]
        if any(not run.needs or run.job in trial.cut_jobs for run in at_work):
            return
        if not at_work and (running or trial.may_begin_run()):
            return
        key = trial_shares.scarce_trial_limit(trial.limits, trial.runs)
        limit = getattr(trial.limits, key)
        trial.reached = f"the trial's limit of {limit:,.10g} {key.replace('_', ' ')} was reached"
        if at_work:
            trial.cut_jobs[at_work[-1].job] = trial.reached

    async def _send_share(self, run: TrialRun, share: dict[str, float]) -> None:
        run.share, run.lowered, run.released = share, {}, False
        await signal_trial_job(run.job, "share", share_payload(share))

"""The limits of a whole trial: an even share for each run, and the end of those beyond it.

Every run has the same share of a limit as a limit of its own, so that all of them run under the
same conditions and the trial can never pass its limits. What a run leaves goes to no other.
"""

from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from workflows.runtime.activity_calls import run_watch
from workflows.runtime.activity_table import WATCH_TRIAL
from workflows.trials.trial_display import TrialDisplay
from workflows.trials.trial_state import TrialState

SHARE_USED = "its share of the trial's limits is used up"


class TrialLimitWatch:
    """Keeps a trial within its limits."""

    def __init__(self, trial: TrialState, display: TrialDisplay) -> None:
        self._trial = trial
        self._display = display

    async def watch_runs(self) -> None:
        """Learn which runs wait for a person, and end those that have used up their share."""
        trial = self._trial
        while True:
            try:
                reply = await run_watch(WATCH_TRIAL, "watch the runs")
            except FailureError as error:
                if is_cancelled_exception(error):
                    return  # the trial is over
                raise
            for run in trial.running:
                waiting = reply.waiting.get(run.job, "")
                if run.waiting != waiting:
                    run.waiting = waiting
                    trial.waiting_since[run.job] = trial.clock.seconds
                if waiting == "budget" and run.has_share:
                    trial.cut_jobs[run.job] = SHARE_USED
            self._display.show_progress()

    def change_limits(self, limits: dict[str, Any]) -> str:
        """Change limits of the trial for the runs that have not begun; return why not."""
        start = self._trial.start
        assert start
        changed = start.model_copy(update={"limits": start.limits.model_copy(update=limits)})
        if not changed.share_problem:
            self._trial.start = changed
        return changed.share_problem

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
        trial.cut_jobs |= {run.job: trial.reached for run in trial.running}

"""The state of a trial: what its signals, its runs and its limits all read and change."""

from __future__ import annotations

from protocol.trial_start import TrialLimits, TrialStart
from protocol.trial_status import TrialRun
from protocol.waiting import WaitState
from workflows import trial_shares
from workflows.trial_clock import TrialClock

CANCELLED = "the trial was cancelled"
MAX_NOTICES = 20


class TrialState:
    """A trial's start, its runs, and why none of them begins or goes on."""

    def __init__(self) -> None:
        self.start: TrialStart | None = None
        """Without it, the trial has not begun: only signals that came with the start are read."""
        self.runs: list[TrialRun] = []
        self.reached = ""
        """The limit because of which no run begins any more."""
        self.waiting_since: dict[str, float] = {}
        """Since when a run waits for a person, by job, in seconds of the trial's clock."""
        self.cut_jobs: dict[str, str] = {}
        """Jobs to be ended because of a limit, with the limit."""
        self.has_news = True
        """Whether shares may have to be handed out again."""
        self.cancellation = CANCELLED
        """Who cancelled the trial, and why."""
        self.is_out_of_time = False
        self.is_stopped = False
        self.is_over = False
        self.pause: WaitState | None = None
        self.notices: list[str] = []
        self.clock = TrialClock()

    def begin(self, start: TrialStart, trial_id: str) -> None:
        """Take the start, and plan its runs.

        Configurations alternate, so that changes in the endpoint's speed affect all of them alike.
        """
        self.start = start
        self.runs = [
            TrialRun(job=f"{trial_id}-{name}-{number:02}", configuration=name)
            for number in range(1, start.runs + 1)
            for name in start.configurations
        ]

    @property
    def limits(self) -> TrialLimits:
        """Return the limits as they are now, which a person may have changed."""
        assert self.start
        return self.start.limits

    def set_limits(self, limits: TrialLimits) -> None:
        assert self.start
        self.start = self.start.model_copy(update={"limits": limits})
        if not self.is_out_of_time:
            # Runs that have not given up yet may begin under the new limits.
            self.reached = ""

    @property
    def running(self) -> list[TrialRun]:
        return [run for run in self.runs if run.status == "running"]

    def first_share(self) -> dict[str, float] | None:
        return trial_shares.first_share(self.limits, self.runs)

    def may_begin_run(self) -> bool:
        """Whether a run may begin: runs that wait for more of a limit come first."""
        waits = any(run.needs for run in self.running)
        return not (self.pause or waits) and self.first_share() is not None

    def add_notice(self, text: str) -> None:
        self.notices = [*self.notices, text[:500]][-MAX_NOTICES:]

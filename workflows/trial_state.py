"""The state of a trial: what its signals, its runs and its limits all read and change."""

from __future__ import annotations

from protocol.notices import MAX_NOTICES, Notice, as_notice
from protocol.trial_start import TrialLimits, TrialStart
from protocol.trial_status import TrialRun
from protocol.waiting import WaitState
from workflows.trial_clock import TrialClock

CANCELLED = "the trial was cancelled"


class TrialState:
    """A trial's start, its runs, and why none of them begins or goes on."""

    def __init__(self) -> None:
        self.start: TrialStart | None = None
        """Without it, the trial has not begun: only signals that came with the start are read."""
        self.runs: list[TrialRun] = []
        self.reached = ""
        """That the time of the trial is over, so that no run begins any more."""
        self.waiting_since: dict[str, float] = {}
        """Since when a run waits for a person, by job, in seconds of the trial's clock."""
        self.cut_jobs: dict[str, str] = {}
        """Jobs to be ended because of a limit, with the limit."""
        self.cancellation = CANCELLED
        """Who cancelled the trial, and why."""
        self.is_stopped = False
        self.is_over = False
        self.pause: WaitState | None = None
        self.notices: list[Notice] = []
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

    @property
    def running(self) -> list[TrialRun]:
        return [run for run in self.runs if run.status == "running"]

    def add_notice(self, notice: Notice) -> None:
        self.notices = [*self.notices, as_notice(notice)][-MAX_NOTICES:]

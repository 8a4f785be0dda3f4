"""The state of a trial: what its signals, its runs and its limits all read and change."""

from temporalio import workflow

from protocol.notices import MAX_NOTICES, Notice, as_notice
from protocol.trial_start import TrialLimits, TrialStart
from protocol.trial_status import TrialRun
from protocol.waiting import WaitState

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


class TrialClock:
    """Counts seconds from the trial's start, without pauses."""

    def __init__(self) -> None:
        self._started = workflow.time()
        self._paused_at: float | None = None
        self._paused_seconds = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds from the start."""
        now = workflow.time() if self._paused_at is None else self._paused_at
        return now - self._started - self._paused_seconds

    def pause(self) -> None:
        self._paused_at = workflow.time()

    def resume(self) -> None:
        if self._paused_at is not None:
            self._paused_seconds += workflow.time() - self._paused_at
        self._paused_at = None

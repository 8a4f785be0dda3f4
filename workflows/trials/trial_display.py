"""Show a trial: in Temporal Web, in lists, and as the answer to its query."""

from temporalio import workflow

from protocol.status import TrialStatus
from protocol.teams import RUN, TEAM
from protocol.trial_status import trial_progress_line
from workflows.runtime.web_display import status_memo
from workflows.trials.trial_state import TrialState


class TrialDisplay:
    """Shows one trial; each change once."""

    def __init__(self, trial: TrialState) -> None:
        self._trial = trial
        self._memo: dict[str, str] = {}

    def status_answer(self) -> TrialStatus:
        """Return the trial's start, and its runs in the order of their start."""
        trial = self._trial
        if trial.start is None:
            return TrialStatus()
        over = "cancelled" if trial.is_stopped else "completed" if trial.is_over else ""
        return TrialStatus(
            title=trial.start.title,
            status=over or ("waiting" if trial.pause else "running"),
            start=trial.start.bounded,
            reached=trial.reached,
            cancellation=trial.cancellation if trial.is_stopped else "",
            waiting=None if over else trial.pause,
            notices=trial.notices,
            runs=trial.runs,
        )

    def show_progress(self) -> None:
        """Show the trial in Temporal Web, and in lists."""
        if self._trial.start is None:
            return
        line = trial_progress_line(self._trial.runs)
        memo = status_memo(self.status_answer(), line)
        team = str(self._trial.start.start.get(TEAM) or "")
        memo |= {TEAM: team, RUN: workflow.info().run_id}
        if memo != self._memo:
            self._memo = memo
            workflow.set_current_details(f"**{self._trial.start.title}**\n\n{line}")
            workflow.upsert_memo(memo)

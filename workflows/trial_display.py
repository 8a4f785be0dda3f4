"""Show a trial: in Temporal Web, in lists, and as the answer to its query."""

from __future__ import annotations

from typing import Any, Literal

from temporalio import workflow

from protocol.trial_status import TrialStatus, trial_progress_line
from protocol.waiting import status_value
from workflows.trial_state import TrialState


class TrialDisplay:
    """Shows one trial; each change once."""

    def __init__(self, trial: TrialState) -> None:
        self._trial = trial
        self._memo: dict[str, str] = {}

    def status_answer(self) -> dict[str, Any]:
        """Return the trial's start, and its runs in the order of their start."""
        trial = self._trial
        if trial.start is None:
            return {"trial": True, "agent": "trial", "status": "running", "runs": []}
        return TrialStatus(
            title=trial.start.title,
            status=self._status_word(),
            start=trial.start.bounded,
            reached=trial.reached,
            cancellation=trial.cancellation if trial.is_stopped else "",
            waiting=None if trial.is_over or trial.is_stopped else trial.pause,
            notices=trial.notices,
            runs=trial.runs,
        ).model_dump(mode="json")

    def _status_word(self) -> Literal["running", "waiting", "completed", "cancelled"]:
        if self._trial.is_stopped:
            return "cancelled"
        if self._trial.is_over:
            return "completed"
        return "waiting" if self._trial.pause else "running"

    def show_progress(self) -> None:
        """Show the trial in Temporal Web, and in lists."""
        if self._trial.start is None:
            return
        line = trial_progress_line(self._trial.runs)
        word = self._status_word()
        memo = {
            "title": self._trial.start.title,
            "agent": "trial",
            "status": status_value(word, "paused" if word == "waiting" else None),
            "state": line,
        }
        if memo != self._memo:
            self._memo = memo
            workflow.set_current_details(f"**{self._trial.start.title}**\n\n{line}")
            workflow.upsert_memo(memo)

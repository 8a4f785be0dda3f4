"""The time of a trial, which stands still while a person has paused it."""

from __future__ import annotations

from temporalio import workflow


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

"""When a project tries again by itself: what it needs is away, and comes back without a person."""

from datetime import timedelta

from temporalio import workflow

from protocol.project_record import ProjectRecord
from workflows.jobs.start_procedure import LONGEST_PAUSE
from workflows.projects import project_waits
from workflows.runtime import wait_states
from workflows.runtime.activity_failures import StepFailed


class ProjectRetries:
    """The retries of one project. Continue-as-new makes the next one due at once."""

    def __init__(self, project: ProjectRecord) -> None:
        self._project = project
        self._pause = timedelta()
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the project waits, but no longer before it tries again."""
        return self.time_left is not None and self.time_left <= 0

    @property
    def time_left(self) -> float | None:
        """Seconds until the project tries again; None if only a person can end its wait."""
        waiting = self._project.waiting
        return self._due - workflow.time() if waiting and waiting.trying else None

    def park(self, failed: StepFailed) -> None:
        """Make the project wait for a person, or after an outage for its next try."""
        if not failed.is_outage:
            project_waits.park_project(self._project, wait_states.wait_after_failure(failed))
            return
        self._pause = min(2 * self._pause or failed.delay, LONGEST_PAUSE)
        self._due = workflow.time() + self._pause.total_seconds()
        waiting = wait_states.temporary_failure_wait(failed, "project")
        project_waits.park_project(self._project, waiting)

    def note_success(self) -> None:
        """End the wait after a step that went through."""
        self._pause = timedelta()
        if self.time_left is not None:
            self._project.waiting = None

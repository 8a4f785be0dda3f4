"""Why a project waits, what ends its wait, a person or its next try, and how its time counts."""

from datetime import timedelta

from temporalio import workflow

from protocol.git_address import git_address_without_user
from protocol.project_record import ProjectRecord
from protocol.project_units import MOST_WAITS, ChildReport, PersonWait, RunningJob
from protocol.publishing import Publish
from protocol.short_text import one_line, shell_quoted
from protocol.waiting import WaitState
from workflows.jobs.start_procedure import LONGEST_PAUSE
from workflows.rules import project_budget_shares
from workflows.runtime import wait_states
from workflows.runtime.activity_failures import StepFailed


def current_project_wait(project: ProjectRecord) -> WaitState | None:
    """Return why the project waits: itself, or because all its children do."""
    if project.waiting:
        return project.waiting.of_job(project.id)
    runs = list(project.running.values())
    if not runs or project.ended_jobs or any(run.last_report.waiting is None for run in runs):
        return None
    return wait_of_project_job(project, runs[0])


def wait_of_project_job(project: ProjectRecord, run: RunningJob) -> WaitState:
    """Return why a job waits, and what a person can do about it in a project."""
    report = run.last_report
    # A job knows only its share; raising it there would take budget from the others.
    remedy = {"remedy": report.remedy, "command": report.command}
    if report.limit in run.share:
        remedy = project_budget_shares.share_limit_remedy(
            project, report.limit, len(project.running)
        )
    return WaitState(
        reason=report.waiting or "tool", message=f"Job {report.job}: {report.message}", **remedy
    )


def is_project_paused(project: ProjectRecord) -> bool:
    """Whether a person has paused the project."""
    return project.waiting is not None and project.waiting.reason == "paused"


def count_project_time(project: ProjectRecord) -> None:
    """Count the time until now. Call it before the reason of waiting changes."""
    now = workflow.now().timestamp()
    project.count_time(now, still=current_project_wait(project) is not None)


def park_project(project: ProjectRecord, waiting: WaitState) -> None:
    """Make the project wait; count the time until now."""
    count_project_time(project)
    project.waiting = waiting


def waiting_for_publish(project: ProjectRecord, publish: Publish) -> WaitState:
    """Return how a project waits for a person to approve its branch."""
    name, request = shell_quoted(project.id), project.head[:8]
    command = f"starter.py approve {name} --id {request}"
    return WaitState(
        reason="approval",
        message=f"The project is done, and its work would be pushed as branch {publish.branch} to "
        f"{git_address_without_user(publish.remote)}.",
        command=command,
        remedy=f"`starter.py diff {name}` shows it. `{command}` or "
        f'`starter.py deny {name} --id {request} --reason "why"`, which ends it without pushing.',
        about={"id": request},
    )


def note_project_job_wait(
    project: ProjectRecord, run: RunningJob, report: ChildReport | None
) -> None:
    """Record what a job waited for and how long, once it continues or has ended."""
    reason = report.waiting if report else None
    if run.person_wait and run.person_wait.reason != reason:
        run.person_wait.seconds = round(workflow.time() - run.person_wait.since)
        project.waits = [*project.waits, run.person_wait][-MOST_WAITS:]
        run.person_wait = None
    if report and reason and not run.person_wait:
        message = one_line(report.message, 300)
        run.person_wait = PersonWait(
            job=run.job, reason=reason, message=message, since=round(workflow.time())
        )


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
            park_project(self._project, wait_states.step_failure_wait(failed))
            return
        self._pause = min(2 * self._pause or failed.delay, LONGEST_PAUSE)
        self._due = workflow.time() + self._pause.total_seconds()
        waiting = wait_states.temporary_failure_wait(failed, "project")
        park_project(self._project, waiting)

    def note_success(self) -> None:
        """End the wait after a step that went through."""
        self._pause = timedelta()
        if self.time_left is not None:
            self._project.waiting = None

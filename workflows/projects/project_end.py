"""The end of a project: approval of its branch, traces, publishing, and its result."""

from dataclasses import dataclass

from protocol.project_record import ProjectRecord
from protocol.project_units import EndedJob, ProjectOutcome
from protocol.publishing import BranchResult
from workflows.projects import project_result, project_waits
from workflows.projects.project_children import ProjectChildren
from workflows.projects.project_display import ProjectDisplay
from workflows.projects.project_settlement import add_project_job_summary, store_learning_handoffs
from workflows.projects.project_steps import ProjectSteps
from workflows.runtime import wait_states
from workflows.runtime.cancellation import (
    Cancellation,
    finish_cancellation,
    run_despite_cancellation,
)
from workflows.runtime.inbox import Inbox


@dataclass(frozen=True)
class ProjectEnd:
    """Ends one project, whether its work is done or it was cancelled."""

    project: ProjectRecord
    steps: ProjectSteps
    inbox: Inbox
    children: ProjectChildren
    display: ProjectDisplay

    async def end_project(self, status: ProjectOutcome) -> None:
        """End the project, unless a person has to approve its branch or the store lacks traces."""
        if self._may_end(status) and await self.has_stored_traces():
            await self._close_project(status)

    async def end_cancelled(self, cancellation: Cancellation) -> None:
        """Cancel the children and write the result; only the server can close it as cancelled."""
        project = self.project
        await run_despite_cancellation(self.children.end_all())
        over = {ended.job: ended for ended in project.ended_jobs}
        for run in project.running.values():
            # A child that is missing here was cancelled before it had begun.
            ended = over.get(run.job) or EndedJob(job=run.job, status="cancelled")
            project.usage.add(ended.usage)
            project_waits.note_project_job_wait(project, run, None)
            add_project_job_summary(project, run, ended.status, ended.reason)
        project.running, project.ended_jobs, project.waiting = {}, [], None

        async def close() -> None:
            await self._close_project(
                "cancelled", cancellation.reason, cancel=cancellation.by_signal
            )

        await finish_cancellation(
            project, self.inbox, cancellation, close=close, publish=self.display.publish_status
        )

    async def has_stored_traces(self) -> bool:
        """Whether the store has all traces; if not, the project waits for it."""
        stored = await store_learning_handoffs(self.project, self.steps, self.inbox)
        if not stored:
            project_waits.park_project(self.project, wait_states.STORE)
        return stored

    def _may_end(self, status: ProjectOutcome) -> bool:
        """Whether the project may end; asks for the approval of its branch if necessary."""
        project, publish = self.project, self.project.start.publish
        if status != "completed" or publish is None or not publish.approve:
            return True
        if project.origin and project.head == project.origin.commit:
            return True  # there is nothing to push
        if not project.publish_decision:
            waiting = project_waits.waiting_for_publish(project, publish)
            project_waits.park_project(project, waiting)
        return bool(project.publish_decision)

    async def _close_project(
        self, status: ProjectOutcome, reason: str = "", *, cancel: bool = False
    ) -> None:
        project = self.project
        branch = await self._publish_branch() if status == "completed" else None
        result = project_result.project_result(project, status, reason)
        result.branch = branch
        reply = await run_despite_cancellation(
            self.steps.close_project(project, result, cancel=cancel)
        )
        result.commit, project.state = project.head, reply.commit
        project.result = result

    async def _publish_branch(self) -> BranchResult | None:
        """Push the branch of a completed project, unless a person refused."""
        project = self.project
        if project.start.publish is None or project.publish_decision == "denied":
            return None
        return await self.steps.publish_project(project, project.start.publish)

"""Show a job: in Temporal Web, to its project, and to people by notifications."""

from __future__ import annotations

import asyncio

from temporalio import workflow

from protocol.job_record import JobRecord
from protocol.proof import PROOF_GUARD
from workflows import due_notifications, job_status
from workflows.continuation import Continuation
from workflows.inbox import Inbox
from workflows.job_steps import JobSteps
from workflows.notification_delivery import begin_notifications
from workflows.web_display import WebDisplay


class JobDisplay:
    """Shows one job; each change once."""

    def __init__(
        self, job: JobRecord, steps: JobSteps, inbox: Inbox, continuation: Continuation
    ) -> None:
        self._job = job
        self._steps = steps
        self._inbox = inbox
        self._web = WebDisplay(continuation)
        self.last_report = ""
        """The last report to the project."""

    def show_status(self) -> None:
        job = self._job
        job.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = job_status.job_status_markdown(job, self._inbox.notices)
        memo = job_status.job_status_memo(job)
        self._web.update(details, memo, job_status.job_status_attributes(job, memo))

    async def publish_status(self) -> None:
        """Show the job's status to everyone concerned."""
        self.show_status()
        await self.report_to_project()
        await self.call_people()

    @property
    def is_reported_waiting(self) -> bool:
        """Whether the last report to the project said that the job waits."""
        return bool(self._job.project) and self.last_report.startswith("waiting ")

    async def report_to_project(self) -> None:
        """Report the status to the project if it has changed."""
        job = self._job
        report = job_status.job_status_report(job, workflow.info().workflow_id)
        change = f"{report.status} {report.waiting} {report.asks} {report.message} {report.phase}"
        if disproved := job.guard_refusals.get(PROOF_GUARD):
            change += f" {disproved}"
        if not job.project or change == self.last_report:
            return
        self.last_report = change
        sending = self._steps.send_signal(job.project, "report", report.model_dump(mode="json"))
        if why := await asyncio.shield(sending):
            self._inbox.notice(f"the report did not reach project {job.project}: {why}")

    async def call_people(self) -> None:
        """Send the notifications that are due."""
        info = workflow.info()
        due = due_notifications.due_job_notifications(
            self._job, info.workflow_id, info.first_execution_run_id
        )
        await begin_notifications(due, self._job.notifying, self._inbox.notice)

    def end_wait(self) -> None:
        """Count the next wait as a new one, even for the same reason."""
        if self._job.waiting is None and self._job.notifying:
            self._job.notifying.waits = {}

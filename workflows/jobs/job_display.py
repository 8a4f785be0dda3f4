"""Show a job: in Temporal Web, to its project, and to people by notifications."""

import asyncio

from temporalio import workflow

from protocol.current_notices import current_notice_lines
from protocol.job_outline import job_outline
from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.notification_requests import Notification
from protocol.outline import Outline
from protocol.project_units import ChildReport
from protocol.search_attribute_names import MODEL
from protocol.status import JobStatus
from protocol.teams import TEAM, spend_memo
from protocol.waiting import WaitState
from workflows.jobs import job_status
from workflows.jobs.job_steps import JobSteps
from workflows.rules import budget
from workflows.rules.notification_drafts import (
    NotificationDraft,
    end_notification,
    has_notified_reason,
    limit_notifications,
    waiting_notification,
)
from workflows.runtime import web_display
from workflows.runtime.continuation import Continuation
from workflows.runtime.inbox import Inbox
from workflows.runtime.notification_delivery import begin_notifications

MOST_STATE = 460
MOST_KNOWN = 64


class JobDisplay:
    """Shows one job; each change once."""

    def __init__(
        self, job: JobRecord, steps: JobSteps, inbox: Inbox, continuation: Continuation
    ) -> None:
        self._job = job
        self._steps = steps
        self._inbox = inbox
        self._web = web_display.WebDisplay(continuation)
        self.last_report: ChildReport | None = None
        """The last report to the project."""

    def show_status(self) -> None:
        job = self._job
        job.refusals += self._inbox.refused
        self._inbox.refused = 0
        done = sum(item.status == "completed" for item in job.state.scope)
        job.progress = job.progress.counted(done, job.usage.spend)
        status = job_status.job_status_answer(job, self._inbox)
        outline = job_outline(status, current_notice_lines(status))
        memo = job_memo(status, outline)
        memo[TEAM] = job.team
        job.count_day(workflow.now().strftime("%Y-%m-%d"))
        if job.project and job.result and job.result.status == "completed":
            # Whether it is accepted, its project says.
            memo["met"] = "handed over"
        model = {MODEL: job.model[:100]}
        attributes = web_display.search_attributes(memo, job.search_attributes, **model)
        spent = job.usage.spend
        figures = spend_memo(spent, job.day, spent - job.spent_before)
        self._web.update(outline, memo, attributes, figures)

    async def publish_status(self) -> None:
        """Show the job's status to everyone concerned."""
        self.show_status()
        await self.report_to_project()
        await self.call_people()

    @property
    def is_reported_waiting(self) -> bool:
        """Whether the last report to the project said that the job waits."""
        return self.last_report is not None and self.last_report.status == "waiting"

    async def report_to_project(self) -> None:
        """Report the status to the project if it has changed."""
        job = self._job
        report = job_status.job_status_report(job, workflow.info().workflow_id)
        if not job.project or (self.last_report and report.news == self.last_report.news):
            return
        self.last_report = report
        sending = self._steps.send_signal(job.project, "report", report.model_dump(mode="json"))
        if why := await asyncio.shield(sending):
            self._inbox.notice(f"the report did not reach project {job.project}: {why}", "report")

    async def call_people(self) -> None:
        """Send the notifications that are due."""
        info = workflow.info()
        due = due_job_notifications(self._job, info.workflow_id, info.first_execution_run_id)
        await begin_notifications(due, self._job.notifying, self._inbox.notice)

    def end_wait(self) -> None:
        """Count the next wait as a new one, even for the same reason."""
        if self._job.waiting is None and self._job.notifying:
            self._job.notifying.waits = {}


def preparing_job_memo(known: dict[str, str], word: str, state: str) -> dict[str, str]:
    """Return the memo of a start. Temporal accepts 2 KB, and a character may take four bytes."""
    fields = {key: value[:MOST_KNOWN] for key, value in known.items()}
    return {**fields, "status": word, "state": state[: MOST_STATE - MOST_KNOWN * len(fields)]}


def preparing_job_markdown(waiting: WaitState, notices: list[Notice]) -> str:
    """Return Temporal Web's current details of a start that waits."""
    status = JobStatus(status="waiting", waiting=waiting, title="Not begun")
    return web_display.outline_markdown(job_outline(status, notices[::-1]))


def job_memo(status: JobStatus, outline: Outline) -> dict[str, str]:
    """Return the last state in short, for when no worker can be asked."""
    phase, (done, total) = status.phase, outline.progress
    assert phase
    state = f"phase {phase.number} ({phase.kind}) {phase.name}, {done}/{total} todos"
    memo = {**web_display.status_memo(status, state), "phase": f"{phase.number} {phase.kind}"}
    if (result := status.result) and result.statements:
        memo |= {"met": result.contract_line, "state": f"{result.ending_line}; {state}"}
    return memo


def due_job_notifications(job: JobRecord, job_id: str, chain: str) -> list[Notification]:
    """Return the notifications that are due, and record them in the job as sent.

    Args:
        job: The current record.
        job_id: Workflow id of the job.
        chain: Run id of its first run.
    """
    if (book := job.notifying) is None:
        return []
    draft = NotificationDraft(book, job_id, job.agent, job.status, f"{chain[:8]}.{job.commit[:8]}")
    notifications = [
        *waiting_notification(draft, job.wait, job_id, title=job.title),
        *limit_notifications(
            draft,
            budget.nearly_used_limits(job),
            parked=has_notified_reason(job.waiting, "budget"),
        ),
    ]
    if job.result and not book.ended:
        book.ended = True
        result = job.result
        text = f"{job_id} has ended: {result.ending_line}"
        if result.unresolved:
            text += f", {len(result.unresolved)} unresolved"
        content = f"{job.title}\n{result.summary}"
        notifications.append(end_notification(draft, job_id, result.status, text, content))
    return notifications

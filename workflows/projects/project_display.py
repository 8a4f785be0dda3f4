"""Show a project: in Temporal Web, and to people by notifications."""

from temporalio import workflow

from protocol.current_notices import current_notice_lines
from protocol.notification_requests import Notification
from protocol.project_outline import project_outline
from protocol.project_record import ProjectRecord
from protocol.project_start import FORM_SPECS
from protocol.short_text import shell_quoted
from protocol.teams import TEAM
from workflows.projects import project_status, project_waits
from workflows.projects.project_status import project_status_answer
from workflows.rules import project_budget_shares
from workflows.rules.notification_drafts import (
    NotificationDraft,
    end_notification,
    has_notified_reason,
    limit_notifications,
    waiting_notification,
)
from workflows.rules.project_budget_shares import total_project_usage
from workflows.runtime.continuation import Continuation
from workflows.runtime.inbox import Inbox
from workflows.runtime.notification_delivery import begin_notifications
from workflows.runtime.web_display import WebDisplay, search_attributes, status_memo


class ProjectDisplay:
    """Shows one project; each change once."""

    def __init__(self, project: ProjectRecord, inbox: Inbox, continuation: Continuation) -> None:
        self._project = project
        self._inbox = inbox
        self._web = WebDisplay(continuation)

    def show_status(self) -> None:
        project = self._project
        project.refusals += self._inbox.refused
        self._inbox.refused = 0
        project.progress = project.progress.counted(
            _proven_count(project), total_project_usage(project).spend
        )
        status = project_status_answer(project, self._inbox)
        memo = status_memo(status, status.line)
        memo[TEAM] = project.start.team
        outline = project_outline(status, current_notice_lines(status))
        self._web.update(outline, memo, search_attributes(memo, project.search_attributes))

    async def publish_status(self) -> None:
        """Show the project's status to everyone concerned."""
        project = self._project
        self.show_status()
        due = due_project_notifications(project, workflow.info().first_execution_run_id)
        await begin_notifications(due, project.notifying, self._inbox.notice)

    def end_wait(self) -> None:
        """Count the next wait as a new one, even for the same reason."""
        if self._project.notifying:
            self._project.notifying.waits.pop(self._project.id, None)


def _proven_count(project: ProjectRecord) -> int:
    """Return how many proofs, units and items of a project there are that stand."""
    items = sum(item.status == "completed" for item in project.scope)
    units = sum(unit.status == "completed" for unit in project.units)
    return items + units + sum(len(feature.evidence) for feature in project.features)


def due_project_notifications(project: ProjectRecord, chain: str) -> list[Notification]:
    """Return the notifications that are due, and record them in the project as sent."""
    if (book := project.notifying) is None:
        return []
    mark = f"{chain[:8]}.{project.state[:8]}"
    agent, word = f"project ({project.start.form})", project_status.project_status_word(project)
    draft = NotificationDraft(book, project.id, agent, word, mark)
    waiting = project.waiting.of_job(project.id) if project.waiting else None
    notifications = waiting_notification(draft, waiting, project.id, title=project.title)
    # While the project itself waits, a person attends to that.
    for run in project.running.values() if project.waiting is None else ():
        stands = None
        if run.last_report.waiting and run.person_wait:
            stands = project_waits.wait_of_project_job(project, run)
        since = str(run.person_wait.since) if run.person_wait else ""
        notifications += waiting_notification(
            draft, stands, run.job, title=project.title, since=since
        )
    book.waits = {
        job: mark for job, mark in book.waits.items() if job in {project.id, *project.running}
    }
    parked = has_notified_reason(project.waiting, "budget")
    notifications += limit_notifications(
        draft, project_budget_shares.nearly_used_project_limits(project), parked=parked
    )
    blocked = [unit for unit in project.units if unit.status == "blocked"]
    kind = FORM_SPECS[project.start.form].unit
    for unit in blocked:
        if unit.id not in book.blocked:
            notifications.append(
                draft.make(
                    "blocked",
                    reason=unit.id,
                    text=f"{project.id}: the {kind} {unit.id} is blocked after {unit.attempts} "
                    "attempts.",
                    remedy="`starter.py show` says why, and what can be done about it.",
                    command=f"starter.py show {shell_quoted(project.id)}",
                    content=f"{unit.title}\n{' '.join(unit.reasons)}",
                )
            )
    book.blocked = [unit.id for unit in blocked]
    if project.result and not book.ended:
        book.ended = True
        text = f"{project.id} has ended: {project_status.project_status_line(project)}"
        content = f"{project.title}\n{project.result.summary}"
        notifications.append(
            end_notification(draft, project.id, project.result.status, text, content)
        )
    return notifications

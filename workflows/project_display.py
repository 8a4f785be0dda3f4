"""Show a project: in Temporal Web, and to people by notifications."""

from __future__ import annotations

from temporalio import workflow

from protocol.project_outline import project_outline
from protocol.project_record import ProjectRecord
from workflows import due_notifications
from workflows.continuation import Continuation
from workflows.inbox import Inbox
from workflows.notification_delivery import begin_notifications
from workflows.project_status import project_status_answer
from workflows.web_display import WebDisplay, search_attributes, status_memo


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
        status = project_status_answer(project, self._inbox)
        memo = status_memo(status, status.line)
        outline = project_outline(status, self._inbox.notices[::-1])
        self._web.update(outline, memo, search_attributes(memo, project.search_attributes))

    async def publish_status(self) -> None:
        """Show the project's status to everyone concerned."""
        project = self._project
        self.show_status()
        due = due_notifications.due_project_notifications(
            project, workflow.info().first_execution_run_id
        )
        await begin_notifications(due, project.notifying, self._inbox.notice)

    def end_wait(self) -> None:
        """Count the next wait as a new one, even for the same reason."""
        if self._project.notifying:
            self._project.notifying.waits.pop(self._project.id, None)

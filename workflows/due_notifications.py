"""Notifications to people, each sent once: pure functions of the record, which remembers them.

A notification has names, fixed words and numbers only. Text by people or models goes into
`content`, which is dropped unless the configuration asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protocol.job_record import JobRecord
from protocol.notification_requests import MOST_CONTENT, Notification, Notifying, Occasion
from protocol.project_forms import FORM_SPECS
from protocol.project_record import ProjectRecord
from protocol.short_text import shell_quoted, shorten_to_start
from protocol.waiting import WaitState
from workflows import budget, project_budget_shares, project_status, project_waits

NOT_CALLED_FOR = ("paused",)
"""A person paused it, or its trial decides: nobody needs to be notified."""


def due_job_notifications(job: JobRecord, job_id: str, chain: str) -> list[Notification]:
    """Return the notifications that are due, and record them in the job as sent.

    Args:
        job: The current record.
        job_id: Workflow id of the job.
        chain: Run id of its first run.
    """
    if (book := job.notifying) is None:
        return []
    draft = _NotificationDraft(book, job_id, job.agent, job.status, f"{chain[:8]}.{job.commit[:8]}")
    notifications = [
        *_waiting_notification(draft, job.wait, job_id, title=job.title),
        *_limit_notifications(
            draft,
            budget.nearly_used_limits(job),
            parked=_has_notified_reason(job.waiting, "budget"),
        ),
    ]
    if job.result and not book.ended:
        book.ended = True
        result = job.result
        text = f"{job_id} has ended: {result.ending_line}"
        if result.unresolved:
            text += f", {len(result.unresolved)} unresolved"
        content = f"{job.title}\n{result.summary}"
        notifications.append(_end_notification(draft, job_id, result.status, text, content))
    return notifications


def due_project_notifications(project: ProjectRecord, chain: str) -> list[Notification]:
    """Like `due_job_notifications`, for a project and its running jobs."""
    if (book := project.notifying) is None:
        return []
    mark = f"{chain[:8]}.{project.state[:8]}"
    agent, word = f"project ({project.start.form})", project_status.project_status_word(project)
    draft = _NotificationDraft(book, project.id, agent, word, mark)
    waiting = project.waiting.of_job(project.id) if project.waiting else None
    notifications = _waiting_notification(draft, waiting, project.id, title=project.title)
    # While the project itself waits, a person attends to that.
    for run in project.running.values() if project.waiting is None else ():
        stands = None
        if run.last_report.waiting and run.person_wait:
            stands = project_waits.wait_of_project_job(project, run)
        since = str(run.person_wait.since) if run.person_wait else ""
        notifications += _waiting_notification(
            draft, stands, run.job, title=project.title, since=since
        )
    book.waits = {
        job: mark for job, mark in book.waits.items() if job in {project.id, *project.running}
    }
    parked = _has_notified_reason(project.waiting, "budget")
    notifications += _limit_notifications(
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
            _end_notification(draft, project.id, project.result.status, text, content)
        )
    return notifications


class _NotificationDraft:
    """Fields that all notifications of one record share."""

    def __init__(self, book: Notifying, owner: str, agent: str, status: str, mark: str) -> None:
        self.book, self.owner, self.agent = book, owner, agent
        self.status, self.mark = status, mark

    def make(
        self, event: Occasion, *, job: str = "", content: str = "", **details: Any
    ) -> Notification:
        self.book.count += 1
        job = job or self.owner
        return Notification(
            key=f"{self.mark}.{self.book.count}.{event}",
            event=event,
            job=job,
            project=self.owner if job != self.owner else "",
            agent=self.agent if job == self.owner else "",
            status=details.pop("status", self.status),
            content=shorten_to_start(content, MOST_CONTENT) if self.book.content else "",
            **details,
        )


def _waiting_notification(
    draft: _NotificationDraft, waiting: WaitState | None, job: str, *, title: str, since: str = ""
) -> list[Notification]:
    """Return a notification for a wait that has not been reported yet."""
    book = draft.book
    if waiting is None:
        book.waits.pop(job, None)
        return []
    if waiting.reason in NOT_CALLED_FOR:
        return []
    mark, question = f"{waiting.reason} {since}", waiting.about.get("id", "")
    if book.waits.get(job) == mark or (question and question == book.asked):
        return []
    book.waits = {**book.waits, job: mark}
    book.asked = question or book.asked
    retrying = " It goes on trying by itself." if waiting.trying else ""
    figures = f" {waiting.message}" if waiting.reason == "budget" else ""
    about = "\n".join(f"{name}: {value}" for name, value in waiting.about.items())
    return [
        draft.make(
            "waiting",
            job=job,
            status="waiting",
            reason=waiting.reason,
            text=f"{job} waits for a person: {waiting.reason}.{figures}{retrying} "
            f"Type: {waiting.command}",
            remedy=waiting.remedy,
            command=waiting.command,
            content=f"{title}\n{waiting.message}\n{about}".strip(),
        )
    ]


def _limit_notifications(
    draft: _NotificationDraft, used: list[budget.BudgetUse], *, parked: bool
) -> Iterator[Notification]:
    """Yield a notification for each limit that has become nearly used up."""
    before, draft.book.limits = draft.book.limits, [each.name for each in used]
    for each in used:
        # Once parked, the notification for the wait names the limit.
        if each.name in before or parked:
            continue
        command = f"starter.py limit {shell_quoted(draft.owner)} {each.name}={each.raised}"
        yield draft.make(
            "limit",
            reason=each.name,
            text=f"{draft.owner} has used {each.share} % of a limit: {each.name}, {each.figures}.",
            remedy=f"At the limit it waits for a person. `{command}` raises it.",
            command=command,
        )


def _end_notification(
    draft: _NotificationDraft, job: str, status: str, text: str, content: str
) -> Notification:
    command = f"starter.py show {shell_quoted(job)}"
    return draft.make(
        "end", status=status, reason=status, text=f"{text}.", command=command, content=content
    )


def _has_notified_reason(waiting: WaitState | None, reason: str) -> bool:
    return waiting is not None and waiting.reason == reason

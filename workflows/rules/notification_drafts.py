"""Notifications to people, each sent once: pure functions of the book of what was sent.

A notification has names, fixed words and numbers only. Text by people or models goes into
`content`, which is dropped unless the configuration asks for it.
"""

from collections.abc import Iterator
from typing import Any

from protocol.notification_requests import MOST_CONTENT, Notification, Notifying, Occasion
from protocol.short_text import shell_quoted, shorten_to_start
from protocol.waiting import WaitState
from workflows.rules import budget

NOT_CALLED_FOR = ("paused", "quota")
"""A person paused it, or its trial or its team's quota decides: nobody needs to be notified."""


class NotificationDraft:
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


def waiting_notification(
    draft: NotificationDraft, waiting: WaitState | None, job: str, *, title: str, since: str = ""
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


def limit_notifications(
    draft: NotificationDraft, used: list[budget.BudgetUse], *, parked: bool
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


def end_notification(
    draft: NotificationDraft, job: str, status: str, text: str, content: str
) -> Notification:
    command = f"starter.py show {shell_quoted(job)}"
    return draft.make(
        "end", status=status, reason=status, text=f"{text}.", command=command, content=content
    )


def has_notified_reason(waiting: WaitState | None, reason: str) -> bool:
    return waiting is not None and waiting.reason == reason

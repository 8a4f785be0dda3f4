"""Which notices of a job still matter: those that `show` and Temporal Web show.

A job keeps its newest notices until it ends, and `show --json` and the report have them all.
"""

from collections.abc import Sequence

from protocol.notices import Notice, Topic
from protocol.status import AnyStatus, JobStatus

RECENT_STEPS = 10
"""Steps for which a notice of one step matters."""
_SUPERSEDED: tuple[Topic, ...] = ("model", "folder", "traces", "report")
"""Topics of which only the newest notice matters."""


def current_notice_lines(status: AnyStatus) -> list[str]:
    """Return the notices that matter now, newest first, each repeated one once with its count."""
    notices = status.notices
    current = [
        notice
        for place, notice in enumerate(notices)
        if not _is_notice_past(notice, status)
        and not _is_notice_superseded(notice, notices[place + 1 :])
    ]
    counts: dict[str, int] = {}
    newest: dict[str, Notice] = {}
    for notice in current:
        counts[notice.text] = counts.pop(notice.text, 0) + 1
        newest[notice.text] = notice
    lines = [
        str(newest[text]) + (f" ({count} times)" if count > 1 else "")
        for text, count in reversed(counts.items())
    ]
    if settled_count := len(notices) - len(current):
        which = (
            "1 settled notice is" if settled_count == 1 else f"{settled_count} settled notices are"
        )
        lines.append(f"{which} left out; `starter.py report` and `show --json` have all")
    return lines


def _is_notice_past(notice: Notice, status: AnyStatus) -> bool:
    """Whether the job has gone on from what a notice says of one step or phase."""
    if not isinstance(status, JobStatus):
        return False
    if notice.topic == "document":
        # The result's notes have it too.
        return status.result is not None
    if notice.step:
        # While the job waits, a person may want to know what it was refused.
        brief = notice.topic == "refused call" and not status.waiting_for
        return status.step - notice.step >= (1 if brief else RECENT_STEPS)
    phase = status.phase.number if status.phase else 0
    return bool(notice.phase) and phase - notice.phase > 1


def _is_notice_superseded(notice: Notice, later: Sequence[Notice]) -> bool:
    applied = {other.signal for other in later if other.topic == "act"}
    if notice.topic == "act" and notice.signal == "pause":
        return not applied.isdisjoint(("pause", "resume", "rewind"))
    if notice.topic in ("act", "refused signal"):
        return notice.signal in applied
    if notice.topic == "folder" and "resume" in applied:
        # A job that goes on brings its folder up to date.
        return True
    return notice.topic in _SUPERSEDED and any(other.topic == notice.topic for other in later)

"""What of a project is shown otherwise than of a job: its units and its jobs."""

from __future__ import annotations

from typing import Any

from protocol.text import one_line

SAID = 200
"""Characters of what a job said at its end."""
MOST_REASONS = 1000
"""Characters."""
MARKS = {"completed": "☑", "in_progress": "▶", "blocked": "☒", "pending": "☐"}


def units(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Box and text of each feature, group or stage."""
    found = []
    for unit in status.get("units") or []:
        text = f"{unit['id']}: {unit['title']}"
        if (why := " ".join(unit.get("reasons") or [])) and unit["status"] != "completed":
            settled = "blocked" if unit["status"] == "blocked" else "sent back"
            text += f" ({settled}: {why[:MOST_REASONS]})"
        found.append((MARKS[unit["status"]], text))
    return found


def jobs(status: dict[str, Any]) -> list[str]:
    """A project's jobs, those that are over before those at work, a line each."""
    over = [
        # What it said: a project that is completed tells no more than how many stages are.
        f"  {each['job']}: {each['status']}"
        + (f" · {one_line(each['summary'], SAID)}" if each.get("summary") else "")
        for each in status.get("jobs") or []
    ]
    work = [
        f"  {each['job']}: {'waiting: ' + each['waiting'] if each.get('waiting') else 'at work'}"
        f" · {each['phase'] or 'starting'}"
        for each in status.get("running") or []
    ]
    return [*over, *work]

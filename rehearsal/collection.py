"""How the rehearsal model lets tools list what it made, and reads what they say of it."""

from __future__ import annotations

from rehearsal.replay import Steps, call_with_retry, close_todo

REVIEW = "notes/review.md"


def collect_results(tool: str) -> Steps:
    """The result file, written by the tool."""
    report = yield from call_with_retry(tool)
    return " ".join(report.splitlines()[:2])


def check_results(tool: str) -> Steps:
    """What the tool says of the result, kept for people."""
    report = yield from call_with_retry(tool)
    note = f"What is cited and what is missing is in {REVIEW}."
    return (yield from close_todo(note, "append_file", path=REVIEW, content=f"{report}\n\n"))

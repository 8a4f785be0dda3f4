"""Procedures for tools that list the rehearsal model's results and report on them."""

from __future__ import annotations

from rehearsal.procedure_replay import Steps, call_tool_with_retry, close_procedure_todo

REVIEW = "notes/review.md"


def collect_rehearsed_results(tool: str) -> Steps:
    """Let the tool write the result file."""
    report = yield from call_tool_with_retry(tool)
    return " ".join(report.splitlines()[:2])


def check_collected_results(tool: str) -> Steps:
    """Let the tool check the result, and store its report for people."""
    report = yield from call_tool_with_retry(tool)
    note = f"What is cited and what is missing is in {REVIEW}."
    return (
        yield from close_procedure_todo(note, "append_file", path=REVIEW, content=f"{report}\n\n")
    )

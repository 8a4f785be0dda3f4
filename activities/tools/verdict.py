"""Tools by which a reviewer decides; the calls are read here."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from activities.text.safe_text import replace_surrogates
from activities.toolkit.registry import REGISTRY, tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError

VERDICTS = ("accept", "send_back")

MAX_FINDINGS = 1800
NOT_HERE = "Only a review can accept a job or send it back."


@tool("verdict", effect="reads", phases=("strategic",))
def accept(
    context: ToolContext,
    findings: Annotated[str, Field(max_length=MAX_FINDINGS, description="What was checked.")] = "",
) -> str:
    """Accept the job as done."""
    raise ToolError(NOT_HERE)


@tool("verdict", effect="reads", phases=("strategic",))
def send_back(
    context: ToolContext,
    findings: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_FINDINGS,
            description="Each defect, with its file and what to do about it.",
        ),
    ],
) -> str:
    """Send the job back to work; it is told the findings."""
    raise ToolError(NOT_HERE)


def read_verdict(calls: list[tuple[str, str]]) -> tuple[Any, str]:
    """Return a reply's verdict and findings; (None, "") if it only looks things up.

    An unreadable verdict counts as sent back, and any rejection outweighs an acceptance.
    """
    accepted = None
    for name, raw in calls:
        if name not in VERDICTS:
            continue
        try:
            findings = replace_surrogates(REGISTRY[name].parse(raw)["findings"])
        except ToolError as problem:
            return "sent back", f"the reviewer's verdict could not be read ({problem})"[:500]
        if name == "send_back":
            return "sent back", findings
        accepted = findings
    return (None, "") if accepted is None else ("accepted", accepted)

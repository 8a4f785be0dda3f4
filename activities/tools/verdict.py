"""Tools by which a reviewer decides; `activities.steps.review_job` reads the calls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError

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

"""Tools for the scope ledger. Original items stay in it, whatever is added."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from protocol.scope_ledger import TEXT_CHARACTERS

Line = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS, pattern=r"\S")]


@tool("job", effect="writes", phases=("strategic",))
def add_item(
    context: ToolContext,
    text: Annotated[Line, Field(description="What the job is to cover as well.")],
) -> str:
    """Add an item to the scope: something the job turned out to need.

    Answers with its id, which todos can name in `items`. The job cannot end while it is open.
    """
    try:
        item = context.state.add_item(text)
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    return f"Added {item.line}"


@tool("job", effect="writes", phases=("strategic",))
def drop_item(
    context: ToolContext,
    id: Annotated[str, Field(description="Id of an open item, such as S2.")],
    reason: Annotated[Line, Field(description="Why it need not be covered.")],
) -> str:
    """Leave a scope item out, for a reason that is shown with the job's result."""
    try:
        item = context.state.drop_item(id, reason)
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    return f"Dropped {item.id}: {item.text} Reason: {item.reason}"

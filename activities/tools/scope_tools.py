"""Tools for the scope ledger. Original items stay in it, whatever is added."""

from typing import Annotated

from pydantic import Field

from activities.job.plan_and_todo_files import with_settled_plan
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from protocol.scope_ledger import TEXT_CHARACTERS
from protocol.short_text import one_line

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


@tool("job", effect="writes", phases=("strategic",), owns=("plan.md",))
def drop_item(
    context: ToolContext,
    ids: Annotated[
        list[Annotated[str, Field(max_length=100)]],
        Field(min_length=1, max_length=500, description="Ids of open items or steps, or ranges."),
    ],
    reason: Annotated[Line, Field(description="Why they need not be covered.")],
) -> str:
    """Leave scope items or steps of the plan out, for a reason that people are shown.

    Of the original items a fifth may be dropped; a person decides on more.
    """
    try:
        dropped = context.state.drop_items(ids, reason)
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    context.files, _ = with_settled_plan(context.files, context.state.scope)
    named = "; ".join(f"{item.id} {one_line(item.text, 80).rstrip('.')}" for item in dropped)
    return f"Dropped {named}. Reason: {dropped[0].reason}"

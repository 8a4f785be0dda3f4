"""The tool that waits. A workflow timer does the waiting; this module checks and reports it."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from activities.toolkit.registry import REGISTRY, tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError


@tool("job", effect="reads", phases=("tactical",))
def wait(
    context: ToolContext,
    seconds: Annotated[int, Field(ge=1, description="How long, at most.")],
    until: Annotated[
        str,
        Field(
            max_length=200,
            description="A time at which it ends earlier (ISO 8601; UTC when no zone is given), "
            "or a few words on what is waited for.",
        ),
    ] = "",
) -> str:
    """Wait, for something that goes on by itself.

    Costs nothing meanwhile, however long it is. It ends after `seconds`, or at the time `until` if
    that comes first; words in `until` only show to people. A pause, a rewind or a cancel of the
    job is heeded meanwhile.
    """
    longest = context.config.limits.wait_seconds
    if seconds > longest:
        raise ToolError(f"wait takes at most {longest:,} seconds; call it again after that.")
    return f"Waited {context.waited_seconds:,} s." + (f" It was until: {until}" if until else "")


def requested_wait_time(raw_arguments: str, longest: int) -> tuple[int, int | None] | None:
    """Return the seconds and end (epoch seconds) that a `wait` call requests; None if invalid."""
    try:
        arguments = REGISTRY["wait"].parse(raw_arguments)
    except ToolError:
        return None
    return (
        (arguments["seconds"], _parse_wait_time(arguments["until"]))
        if arguments["seconds"] <= longest
        else None
    )


def _parse_wait_time(text: str) -> int | None:
    try:
        parsed = datetime.fromisoformat(text.strip())
        return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None

"""What the reply that ends a phase had printed, for the first message of the next phase."""

from __future__ import annotations

from activities.job.conversation_calls import newest_calls
from activities.job.snapshot import Snapshot
from activities.toolkit.agent_tools import agent_tools_by_name
from protocol.short_text import one_line, shorten_to_end

OUTPUT_CHARACTERS = 1500
"""Characters shown of the end of one output; test runners summarise there."""
MAX_OUTPUTS = 4
"""Most outputs shown, the last ones."""
HEADING = "# What the last calls of the phase before gave, which no reply has read"


def unread_output(snapshot: Snapshot) -> str:
    """Return the end of what commands and tools of the newest reply gave; empty if none ran.

    What only reads the workspace is left out: it can be read again.
    """
    tools = agent_tools_by_name(snapshot.config)
    outputs: list[str] = []
    try:
        calls = newest_calls(snapshot.conversation, snapshot.state.step)
    except LookupError:
        return ""
    results: dict[str, str] = {}
    for number in reversed(range(len(snapshot.conversation))):
        message = snapshot.conversation.message(number)
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            results[message["tool_call_id"]] = str(message["content"])
    for call in calls:
        function = call["function"]
        entry = tools.get(function["name"])
        if (
            entry
            and (entry.group == "shell" or entry.effect == "outside")
            and call["id"] in results
        ):
            named = one_line(f"{function['name']} {function['arguments']}", 200)
            outputs.append(f"{named}\n{shorten_to_end(results[call['id']], OUTPUT_CHARACTERS)}")
    return "\n\n".join([HEADING, *outputs[-MAX_OUTPUTS:]]) if outputs else ""

"""Shows a call of the newest reply to the person who is asked about it.

What is shown goes into Temporal's history, so credentials are redacted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import open_activity_snapshot
from activities.redaction.secrets import redact
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.text.safe_text import replace_surrogates
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.tool_errors import ToolError
from protocol.requests import ShowCallReply, ShowCallRequest

MAX_CHARACTERS = 16_000
"""Total size of all arguments, since they go into history and onto a screen."""


def show_call_activity(root: Root) -> Callable[[ShowCallRequest], ShowCallReply]:
    """Return the `show_call` activity."""

    @activity.defn(name="show_call")
    def show_call(request: ShowCallRequest) -> ShowCallReply:
        """Return the call's arguments, or why it cannot be run."""
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(root, request)
            called = snapshot.tool_call(request.call)["function"]
            shown = ShowCallReply()
            try:
                arguments = agent_tools_by_name(snapshot.config)[called["name"]].parse(
                    called["arguments"]
                )
            except ToolError as problem:
                shown.error = redact(str(problem))[:500]
            else:
                shown.arguments = shown_call_arguments(arguments)
            return shown

    return show_call


def shown_call_arguments(arguments: dict[str, Any]) -> dict[str, str]:
    """Return each argument as redacted text; cut ones say how many characters are missing."""
    most = MAX_CHARACTERS // max(1, len(arguments))
    return {
        name: _truncate_shown_argument(redact(_show_call_argument(value)), most)
        for name, value in arguments.items()
    }


def _show_call_argument(value: Any) -> str:
    if isinstance(value, str):
        return replace_surrogates(value)
    return replace_surrogates(
        json.dumps(value, ensure_ascii=False, default=lambda model: model.model_dump())
    )


def _truncate_shown_argument(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]} [{len(text) - most:,} more characters are not shown]"

"""Shows a call of the newest reply to the person who is asked about it.

What is shown goes into Temporal's history, so credentials are redacted.
"""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import open_activity_snapshot
from activities.redaction.secrets import redact
from activities.redaction.shown_arguments import show_arguments
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.tool_errors import ToolError
from protocol.requests import ShowCallReply, ShowCallRequest


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
                shown.arguments = show_arguments(arguments)
            return shown

    return show_call

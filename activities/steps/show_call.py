"""Shows a call of the newest reply to the person who is asked about it.

What is shown goes into Temporal's history, so credentials are redacted.
"""

import hashlib

from activities.checkpoints import Root
from activities.guards.signed_approvals import signature_rule
from activities.job.activity_context import open_activity_snapshot
from activities.redaction.secrets import redact, show_arguments
from activities.steps.root_activity import thread_activity
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.tool_errors import ToolError
from protocol.requests import ShowCallReply, ShowCallRequest


@thread_activity
def show_call(root: Root, request: ShowCallRequest) -> ShowCallReply:
    snapshot = open_activity_snapshot(root, request)
    called = snapshot.tool_call(request.call)["function"]
    shown = ShowCallReply()
    if rule := signature_rule(snapshot.config, called["name"]):
        shown.signers = rule.by
        shown.digest = hashlib.sha256(called["arguments"].encode()).hexdigest()
    try:
        arguments = agent_tools_by_name(snapshot.config)[called["name"]].parse(called["arguments"])
    except ToolError as problem:
        shown.error = redact(str(problem))[:500]
    else:
        shown.arguments = show_arguments(arguments)
    return shown

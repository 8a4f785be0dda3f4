"""Writes the details of an error into the folder of a job."""

import json

from activities.checkpoints import Root
from activities.job.activity_context import check_activity_root, open_activity_snapshot
from activities.redaction.credentials import hide_credentials
from activities.redaction.secrets import redact, show_arguments
from activities.runtime.activity_info import activity_job_id
from activities.steps.root_activity import thread_activity
from protocol.requests import EmptyReply, WriteErrorRequest


@thread_activity
def write_error(root: Root, request: WriteErrorRequest) -> EmptyReply:
    check_activity_root(root, request.root, request.remote)
    folder = root.workspace(activity_job_id()) / "errors"
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"step_{request.step:05d}.md"
    # Write first what needs no checkpoint: the checkpoint may be what is missing.
    page.write_text(redact(request.text))
    parts = [request.text]
    if request.call is not None:
        parts.append(f"## The call\n\n{_describe_call(root, request)}\n")
    if request.cause:
        parts.append(f"## The cause\n\n{request.cause}\n")
    page.write_text(hide_credentials(redact("\n".join(parts))))
    return EmptyReply()


def _describe_call(root: Root, request: WriteErrorRequest) -> str:
    """Describe the call with its arguments, redacted and cut to a bounded size."""
    assert request.call is not None
    try:
        called = open_activity_snapshot(root, request).tool_call(request.call)["function"]
    except Exception as error:  # reporting must not fail
        return f"It cannot be read: {type(error).__name__}: {error}"
    try:
        arguments = json.loads(called["arguments"])
        listed = show_arguments(arguments)
    except (ValueError, AttributeError):
        listed = show_arguments({"arguments": called["arguments"]})
    lines = [f"- {name}: {value}" for name, value in listed.items()]
    return "\n".join([f"`{called['name']}` with", "", *lines] if lines else [called["name"]])

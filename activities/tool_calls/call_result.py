"""The result of a tool call, recorded in the conversation and in a checkpoint."""

from __future__ import annotations

from temporalio import activity

from activities.job.activity_context import (
    activity_schedule_time,
)
from activities.job.conversation_calls import find_same_result
from activities.job.snapshot import Snapshot
from activities.job.tool_messages import ERROR_PREFIX, tool_result_message
from activities.model.prompt import count_prompt_tokens
from activities.redaction.credentials import hide_credentials
from activities.text import fingerprints
from activities.toolkit.result_text import result_error_line, truncate_result
from protocol.requests import GuardOutcome, ToolReply, ToolRequest

SAME_RESULT = "The same result as that of {call} above, to the letter; nothing of it has changed."


def tool_call_commit_time(request: ToolRequest) -> int:
    """Return the commit's date; a local activity uses that of the last regular one."""
    return request.at if activity.info().is_local else activity_schedule_time()


def record_call_result(
    snapshot: Snapshot,
    request: ToolRequest,
    story: str,
    text: str,
    report: GuardOutcome | None = None,
    *,
    failed: bool = False,
    added: str = "",
    changed: bool = False,
    polls: bool = False,
) -> ToolReply:
    """Append the result of a call to the conversation, and save the checkpoint.

    Args:
        snapshot: The checkpoint as the call left it.
        request: The call.
        story: The commit message.
        text: The result, or why there is none.
        report: What guards did.
        failed: Whether the result is an error.
        added: Text that hooks add to it.
        changed: Whether the tool changed files of the work.
        polls: Whether repeated calls with changing times are the same.
    """
    # A server's answer may contain the key that was sent to it.
    text = hide_credentials(text)
    content = truncate_result(
        text + hide_credentials(added), snapshot.config.limits.result_characters
    )
    if not failed and (
        same := find_same_result(snapshot.conversation, content, snapshot.view.first_uncleared)
    ):
        content = SAME_RESULT.format(call=same)
    snapshot.conversation = snapshot.conversation.append(
        tool_result_message(
            request.step, request.call, f"{ERROR_PREFIX}{content}" if failed else content
        )
    )
    snapshot.append_images()
    guarded = report.model_dump(exclude_unset=True) if report else {}
    time_ms = tool_call_commit_time(request)
    commit = snapshot.save(story, time_ms)
    mark = fingerprints.poll_fingerprint(text) if polls else fingerprints.result_fingerprint(text)
    reply = ToolReply(commit=commit, at=time_ms, ok=not failed, fingerprint=mark, **guarded)
    if changed:
        reply.changed = True
    reply.context = count_prompt_tokens(snapshot)
    if failed:
        if request.refused_by:
            reply.refused_by = request.refused_by
        reply.error_fingerprint = fingerprints.error_fingerprint(text)
        reply.error = result_error_line(text)
    return reply

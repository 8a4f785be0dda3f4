"""Derives who refused a call from its result, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from cli.report.history import ActivityResult
from cli.report.report_content import MOST_LISTED, Kind, RefusalLine

DENIED = "deny_call"
"""The activity that answers calls for which no tool runs."""
_NOT_ACCEPTED = "Not run: your reply was not accepted"
_UNKNOWN = "There is no tool"
_NARROWED = " is not accepted now. "
_HELD_BACK = "Not counted yet: "
_BY_PERSON = "A person did not approve this call"
_BY_NOBODY = "Nobody approved this call"
_SENT_BACK = "The review sent the job back"
_GATES = {"todo_complete": "phase gate", "job_complete": "completion gate"}
_TALK = {
    "asks": "a reply that asks a person",
    "claims": "a reply that claims to be done",
    "reports": "a reply that only reports",
    "refuses": "a reply that refuses",
}


@dataclass(frozen=True)
class Refusal:
    """The refusal of a call or reply."""

    kind: Kind
    by: str
    tool: str
    reason: str = ""
    mark: str = ""
    """Fingerprint of the reason without its numbers and names."""


def derive_reply_refusal(result: ActivityResult) -> Refusal | None:
    """Return what was wrong with a reply without tool calls; None if it has calls."""
    reply = result.result
    if reply.get("calls"):
        return None
    if guard := reply.get("guard"):
        return Refusal("guard", str(guard), "", str(reply.get("refusal") or ""))
    verdict = str(reply.get("verdict") or "")
    words = str(reply.get("refused_words") or "")
    return Refusal("reply", _TALK.get(verdict, "a reply without a tool call"), "", words)


def derive_call_refusal(
    activity_result: ActivityResult, reply_guard: str = "", ending_guard: str = ""
) -> Refusal | None:
    """Return what refused a tool call; None if it succeeded or a person is asked.

    Args:
        reply_guard: The guard that rejected the call's reply, if any.
        ending_guard: The guard that has just refused the ending the call asked for, if any.
    """
    result, error = activity_result.result, str(activity_result.result.get("error") or "")
    if result.get("ok") is not False or result.get("asks"):
        return None
    mark = str(result.get("error_fingerprint") or "")
    if activity_result.activity == DENIED:
        tool = activity_result.summary.rpartition(" · ")[2].removesuffix(" denied")
        if error.startswith(_NOT_ACCEPTED):
            return Refusal("guard", reply_guard or "a guard of replies", tool, error, mark)
        if _NARROWED in error:
            return Refusal("phase rule", "stuck detection", tool, error, mark)
        by = "unknown tool" if error.startswith(_UNKNOWN) else "phase rule"
        return Refusal("phase rule", by, tool, error, mark)
    if guard := result.get("guard") or ending_guard:
        return Refusal("guard", str(guard), activity_result.activity, error, mark)
    if error.startswith(_HELD_BACK):
        return Refusal(
            "gate", "a call before it that failed", activity_result.activity, error, mark
        )
    if error.startswith(_BY_PERSON):
        return Refusal("person", "a person", activity_result.activity, error, mark)
    if error.startswith(_BY_NOBODY):
        return Refusal("person", "nobody in time", activity_result.activity, error, mark)
    if activity_result.summary.endswith(" refused"):
        by = _GATES.get(activity_result.activity, f"gate of {activity_result.activity}")
        by = "review" if error.startswith(_SENT_BACK) else by
        return Refusal("gate", by, activity_result.activity, error, mark)
    if activity_result.activity == "todo_complete":
        return Refusal("gate", "todo evidence", activity_result.activity, error, mark)
    return Refusal("tool error", activity_result.activity, activity_result.activity, error, mark)


def merge_refusals(rows: list[RefusalLine]) -> list[RefusalLine]:
    """Merge refusals by origin and tool, with the reason of the most frequent."""
    rows_by_key: dict[tuple[str, str, str], RefusalLine] = {}
    for row in rows:
        key = (row.kind, row.by, row.tool)
        if key not in rows_by_key:
            rows_by_key[key] = row.model_copy()
            continue
        group = rows_by_key[key]
        group.count += row.count
        steps = [step for step in (group.first_step, row.first_step) if step is not None]
        group.first_step = min(steps, default=None)
        steps = [step for step in (group.last_step, row.last_step) if step is not None]
        group.last_step = max(steps, default=None)
    return sorted(rows_by_key.values(), key=lambda row: -row.count)[:MOST_LISTED]

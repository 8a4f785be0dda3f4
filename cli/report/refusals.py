"""Derives who refused a call from its result, as pure functions."""

from dataclasses import dataclass

from cli.report.history import ActivityResult
from cli.report.report_content import MOST_LISTED, Kind, RefusalLine

_REFUSERS: dict[str, tuple[Kind, str]] = {
    "completion": ("gate", "completion gate"),
    "contract": ("gate", "contract"),
    "held back": ("gate", "a call before it that failed or that nobody had read"),
    "judge": ("gate", "judge"),
    "nobody": ("person", "nobody in time"),
    "person": ("person", "a person"),
    "phase": ("phase rule", "phase rule"),
    "phase end": ("gate", "phase gate"),
    "review": ("gate", "review"),
    "stuck": ("phase rule", "stuck detection"),
    "tools": ("phase rule", "unknown tool"),
}
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
    tool, refused_by = activity_result.tool, str(result.get("refused_by") or "")
    kind: Kind
    if guard := result.get("guard") or ending_guard:
        kind, by = "guard", str(guard)
    elif refused_by == "reply":
        kind, by = "guard", reply_guard or "a guard of replies"
    elif refused_by:
        kind, by = _REFUSERS.get(refused_by, ("gate", f"gate of {tool}"))
    elif tool == "todo_complete":
        kind, by = "gate", "todo evidence"
    else:
        kind, by = "tool error", tool
    return Refusal(kind, by, tool, error, mark)


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

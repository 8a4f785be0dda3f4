"""What workflow code knows of a reply's calls: names and fingerprints, never arguments."""

import json

from activities.job.conversation_calls import count_newest_results, newest_calls
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import redact
from activities.text import fingerprints
from activities.tools.wait import requested_wait_time
from protocol.requests import MAX_PATH, Call

MAX_NAME = 100


def newest_call_refs(snapshot: Snapshot) -> tuple[list[Call], int]:
    try:
        calls = newest_calls(snapshot.conversation, snapshot.state.step)
    except LookupError:
        return [], 0
    made_count, longest = (
        count_newest_results(snapshot.conversation),
        snapshot.config.limits.wait_seconds,
    )
    functions = [call["function"] for call in calls]
    return [
        describe_call_ref(function["name"], function["arguments"], longest)
        for function in functions
    ], made_count


def describe_call_ref(name: str, raw: str, longest_wait: int) -> Call:
    call = Call(tool=name[:MAX_NAME], fingerprint=fingerprints.arguments_fingerprint(raw))
    if path := _call_ref_path(raw):
        call.path = path
    if name == "wait" and (wait_time := requested_wait_time(raw, longest_wait)):
        call.seconds, call.until = wait_time
    return call


def _call_ref_path(raw: str) -> str | None:
    try:
        arguments = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    path = arguments.get("path") if isinstance(arguments, dict) else None
    return redact(path[:MAX_PATH]) if isinstance(path, str) else None

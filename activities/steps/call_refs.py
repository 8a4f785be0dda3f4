"""What workflow code knows of the calls of a reply: names and marks, never arguments."""

from __future__ import annotations

import json

from activities.job.conversation import answered
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import redact
from activities.text import fingerprints
from activities.tools.wait import asked_time
from protocol.requests import MAX_PATH, Call

MAX_NAME = 100


def newest(snapshot: Snapshot) -> tuple[list[Call], int]:
    """The calls of the newest reply, and how many of them were made."""
    try:
        held = snapshot.conversation.calls(snapshot.state.step)
    except LookupError:
        return [], 0
    made, longest = answered(snapshot.conversation), snapshot.config.limits.wait_seconds
    functions = [call["function"] for call in held]
    return [called(one["name"], one["arguments"], longest) for one in functions], made


def called(name: str, raw: str, longest: int) -> Call:
    """What workflow code knows of a call."""
    call = Call(tool=name[:MAX_NAME], fingerprint=fingerprints.of_arguments(raw))
    if path := _path(raw):
        call.path = path
    if name == "wait" and (asked := asked_time(raw, longest)):
        call.seconds, call.until = asked
    return call


def _path(raw: str) -> str | None:
    """The path a call is about, for people who read the history."""
    try:
        arguments = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    path = arguments.get("path") if isinstance(arguments, dict) else None
    return redact(path[:MAX_PATH]) if isinstance(path, str) else None

"""What a hook's exit code and output say: a pure reading, by the protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

MOST_SAID = 4000
"""Characters of a reason that reach the model."""


@dataclass(frozen=True)
class Ran:
    """How a hook's process ended."""

    code: int | None = None
    """Exit code; negative for a signal; None when it was killed for `trouble`."""
    out: str = ""
    err: str = ""
    trouble: str = ""
    """Such as `it did not end within 10 s`."""


@dataclass(frozen=True)
class Answer:
    """What a hook says."""

    word: Literal["nothing", "allow", "deny", "ask"]
    reason: str = ""
    updated: dict[str, Any] = field(default_factory=dict)
    context: str = ""
    """What is to be added to a result."""


class HookFailed(Exception):
    """The hook gave no answer that counts; says why."""


def read_answer(ran: Ran) -> Answer:
    """The answer. Raises HookFailed."""
    if ran.trouble:
        raise HookFailed(ran.trouble)
    if ran.code == 2:
        return Answer("deny", _bounded(ran.err) or "no reason was given")
    if ran.code != 0:
        raise HookFailed(_ending(ran))
    text = ran.out.strip()
    # Any other text is for people: the protocol knows only objects.
    return _object(text) if text.startswith("{") else Answer("nothing")


def _object(text: str) -> Answer:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HookFailed(f"what it printed begins like JSON and is none ({error})") from None
    inner = said.get("hookSpecificOutput")
    if inner is not None and not isinstance(inner, dict):
        raise HookFailed(f"hookSpecificOutput is {inner!r:.60}, not an object")
    answers = [_layer(said), _layer(inner or {})]
    strength = ("nothing", "allow", "ask", "deny")
    word = max((answer.word for answer in answers), key=strength.index)
    return Answer(
        word,
        next((a.reason for a in answers if a.reason and a.word == word), "")
        or next((a.reason for a in answers if a.reason), ""),
        {**answers[0].updated, **answers[1].updated},
        "\n".join(answer.context for answer in answers if answer.context),
    )


def _layer(said: dict[str, Any]) -> Answer:
    """One of the two places in which the protocol's keys may stand."""
    decision = said.get("decision")
    if isinstance(decision, dict):
        # The form of PermissionRequest.
        said = {**said, **decision, "permissionDecision": decision.get("behavior")}
        said["reason"] = said.get("reason") or decision.get("message")
        decision = None
    permission = said.get("permissionDecision")
    known = {None: "nothing", "allow": "allow", "approve": "allow", "deny": "deny", "ask": "ask"}
    if not isinstance(permission, str | None) or permission not in known:
        raise HookFailed(f"permissionDecision is {permission!r:.60}, expected allow, deny or ask")
    if decision not in (None, "block", "approve"):
        raise HookFailed(f"decision is {decision!r:.60}, expected block")
    updated = said.get("updatedInput")
    if updated is not None and not isinstance(updated, dict):
        raise HookFailed(f"updatedInput is {updated!r:.60}, not an object")
    stopped = said.get("continue") is False
    word: Any = known[permission]
    if decision == "block" or stopped:
        word = "deny"
    elif word == "nothing" and decision == "approve":
        word = "allow"
    reasons = (said.get(key) for key in ("permissionDecisionReason", "reason", "stopReason"))
    reason = next((one for one in reasons if isinstance(one, str) and one), "")
    context = said.get("additionalContext")
    return Answer(
        word,
        _bounded(reason),
        updated or {},
        _bounded(context) if isinstance(context, str) else "",
    )


def _ending(ran: Ran) -> str:
    said = f": {_bounded(ran.err)[:300]}" if ran.err.strip() else ""
    if ran.code is not None and ran.code < 0:
        return f"it was ended by signal {-ran.code}{said}"
    if ran.code in (126, 127):
        return f"it could not be run (exit code {ran.code}){said}"
    return f"it ended with exit code {ran.code}, and only 0 and 2 are answers{said}"


def _bounded(text: str) -> str:
    return text.strip()[:MOST_SAID]

"""Interpret a hook's exit code and output by the protocol, without side effects."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from protocol.errors import Interruption

MAX_REASON = 4000
UNREADABLE = re.compile(
    r"^\s*\{|hookSpecificOutput|permissionDecision"
    r"|[\"'](decision|continue|updatedInput)[\"']\s*:",
    re.MULTILINE,
)
FIRST_LINES = 3
MAX_SHOWN = 300
MAX_BRACES = 1000
"""Most positions at which an object is searched for."""


HookDecision = Literal["nothing", "allow", "ask", "deny"]
STRICTEST_FIRST: tuple[HookDecision, ...] = ("deny", "ask", "allow", "nothing")


@dataclass(frozen=True)
class HookRun:
    code: int | None = None
    """Exit code; negative for a signal; None if it was killed because of `trouble`."""
    out: str = ""
    err: str = ""
    trouble: str = ""
    """Why it was killed, such as `it did not end within 10 s`."""


@dataclass(frozen=True)
class HookAnswer:
    decision: HookDecision
    reason: str = ""
    updated: dict[str, Any] = field(default_factory=dict)
    context: str = ""
    """Text to add to a result."""


class HookFailed(Interruption):
    """The hook gave no valid answer; the message says why."""


def read_answer(ran: HookRun) -> HookAnswer:
    if ran.trouble:
        raise HookFailed(ran.trouble)
    if ran.code == 2:
        return HookAnswer("deny", _clip_hook_text(ran.err) or "no reason was given")
    if ran.code != 0:
        raise HookFailed(_describe_hook_exit(ran))
    return _read_hook_output(ran.out)


def _read_hook_output(text: str) -> HookAnswer:
    """Read the objects in the output; other text is for people.

    A shell profile may print a banner before an answer, and a log may surround it. An object in the
    middle of a line may be a quotation: it can deny, but permits nothing.
    """
    answers, rest = [], ""
    for between, content, is_quoted in _find_hook_answer_objects(text.lstrip("\ufeff")):
        rest += between
        if content is not None:
            answer = _read_hook_answer_object(content)
            is_refusal = answer.decision in ("deny", "ask")
            answers.append(answer if is_refusal or not is_quoted else HookAnswer("nothing"))
    if UNREADABLE.search(rest):
        lines = " / ".join(line.strip() for line in text.strip().splitlines()[:FIRST_LINES])
        raise HookFailed(f"no answer can be read in what it printed: {lines[:MAX_SHOWN]}")
    return _merge_answers(answers)


def _find_hook_answer_objects(text: str) -> Iterator[tuple[str, dict[str, Any] | None, bool]]:
    """Yield the text before each object, the object, and if it is within a line; then the rest."""
    decoder, place, start = json.JSONDecoder(), 0, 0
    for _ in range(MAX_BRACES):
        if (brace := text.find("{", place)) < 0:
            break
        try:
            parsed, end = decoder.raw_decode(text, brace)
        except (ValueError, RecursionError):
            place = brace + 1
            continue
        before = text[text.rfind("\n", 0, brace) + 1 : brace]
        yield text[start:brace], parsed, bool(before.strip())
        place = start = end
    yield text[start:], None, False


def _read_hook_answer_object(answer: dict[str, Any]) -> HookAnswer:
    inner = answer.get("hookSpecificOutput")
    if inner is not None and not isinstance(inner, dict):
        raise HookFailed(f"hookSpecificOutput is {inner!r:.60}, not an object")
    return _merge_answers([_read_hook_answer_layer(answer), _read_hook_answer_layer(inner or {})])


def _merge_answers(answers: list[HookAnswer]) -> HookAnswer:
    """Return the strictest of several answers, with everything that all of them add."""
    decisions = {answer.decision for answer in answers}
    word: HookDecision = next((word for word in STRICTEST_FIRST if word in decisions), "nothing")
    return HookAnswer(
        word,
        next((a.reason for a in answers if a.reason and a.decision == word), "")
        or next((a.reason for a in answers if a.reason), ""),
        {key: value for answer in answers for key, value in answer.updated.items()},
        "\n".join(answer.context for answer in answers if answer.context),
    )


def _read_hook_answer_layer(answer: dict[str, Any]) -> HookAnswer:
    """Read one of the two places where the protocol allows its keys."""
    decision = answer.get("decision")
    if isinstance(decision, dict):
        # The format of PermissionRequest.
        answer = {**answer, **decision, "permissionDecision": decision.get("behavior")}
        answer["reason"] = answer.get("reason") or decision.get("message")
        decision = None
    permission = answer.get("permissionDecision")
    known = {None: "nothing", "allow": "allow", "approve": "allow", "deny": "deny", "ask": "ask"}
    if not isinstance(permission, str | None) or permission not in known:
        raise HookFailed(f"permissionDecision is {permission!r:.60}, expected allow, deny or ask")
    if decision not in (None, "block", "approve"):
        raise HookFailed(f"decision is {decision!r:.60}, expected block")
    updated = answer.get("updatedInput")
    if updated is not None and not isinstance(updated, dict):
        raise HookFailed(f"updatedInput is {updated!r:.60}, not an object")
    stopped = answer.get("continue") is False
    word: Any = known[permission]
    if decision == "block" or stopped:
        word = "deny"
    elif word == "nothing" and decision == "approve":
        word = "allow"
    reasons = (answer.get(key) for key in ("permissionDecisionReason", "reason", "stopReason"))
    reason = next((value for value in reasons if isinstance(value, str) and value), "")
    context = answer.get("additionalContext")
    return HookAnswer(
        word,
        _clip_hook_text(reason),
        updated or {},
        _clip_hook_text(context) if isinstance(context, str) else "",
    )


def _describe_hook_exit(ran: HookRun) -> str:
    reason = f": {_clip_hook_text(ran.err)[:300]}" if ran.err.strip() else ""
    if ran.code is not None and ran.code < 0:
        return f"it was ended by signal {-ran.code}{reason}"
    if ran.code in (126, 127):
        return f"it could not be run (exit code {ran.code}){reason}"
    return f"it ended with exit code {ran.code}, and only 0 and 2 are answers{reason}"


def _clip_hook_text(text: str) -> str:
    return text.strip()[:MAX_REASON]

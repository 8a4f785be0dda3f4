"""Evidence: what the system itself has recorded of a tester's runs, whatever the tester says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from activities.conversation import Conversation
from activities.snapshot import Snapshot
from protocol.handoffs import Check, Handoff, Verdict

MOST_KEPT = 20


def evidence_of(snapshot: Snapshot, proof: dict[Check, list[str]]) -> dict[Check, list[str]]:
    """For each check, the calls of this job that ran it: tool, arguments, first line of result.

    Args:
        snapshot: A checkpoint of the tester; its conversations are what counts.
        proof: Tools, as shell patterns, a result of which proves a check.
    """
    found: dict[Check, list[str]] = {check: [] for check in proof}
    for name, arguments, result in _runs(snapshot):
        for check, patterns in proof.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                head = next((line for line in result.splitlines() if line.strip()), "")
                found[check].append(f"{name} {arguments[:100]}: {head[:150]}")
    return {check: lines[-MOST_KEPT:] for check, lines in found.items()}


def unproved(handoff: Handoff, verdict: Verdict, found: dict[Check, list[str]]) -> list[str]:
    """What a verdict claims and nothing shows, a sentence each."""
    told: list[str] = []
    by_check = {result.check: result for result in verdict.checks}
    if missing := [check for check in handoff.checks if check not in by_check]:
        told.append(f"The verdict says nothing of these checks: {', '.join(missing)}.")
    for check in handoff.checks:
        if not found.get(check):
            tools = ", ".join(handoff.proof.get(check, [])) or "none"
            told.append(
                f"The check {check} was not run: there is no result of a tool that does that "
                f"({tools})."
            )
    failed = [check for check, result in by_check.items() if not result.passed]
    if verdict.passed and failed:
        told.append(f"`passed` cannot be true while these did not pass: {', '.join(failed)}.")
    if not verdict.passed and not failed and not verdict.findings:
        told.append("`passed` is false: say in `findings` what is wrong.")
    if verdict.passed and handoff.coverage is not None:
        if verdict.coverage is None:
            told.append("A least coverage is asked for: give the measured `coverage`.")
        elif verdict.coverage < handoff.coverage:
            told.append(
                f"`passed` cannot be true with a coverage of {verdict.coverage:g} %: "
                f"{handoff.coverage:g} % are asked for."
            )
    return told


def _runs(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Tool calls of all phases that were carried out and did not fail: name, arguments, result."""
    earlier = [
        Conversation(snapshot.history.below(entry.path))
        for entry in snapshot.history.children()
        if entry.kind == "folder"
    ]
    for conversation in [*earlier, snapshot.conversation]:
        calls: dict[str, dict[str, Any]] = {}
        for raw in conversation.stored():
            message = json.loads(raw)
            for call in message.get("tool_calls") or []:
                calls[call["id"]] = call["function"]
            called = calls.get(message.get("tool_call_id", ""))
            content = message.get("content")
            if called and isinstance(content, str) and not content.startswith("Error"):
                yield called["name"], str(called["arguments"]), content

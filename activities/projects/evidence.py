"""Evidence: what the system itself has recorded of a tester's runs, whatever the tester says.

A command is on record in `commands/log.jsonl`, any other tool in the conversation. What was run
before the files under test were last changed shows nothing of them as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from activities.checkpoints import Files, diff
from activities.job.conversation import Conversation
from activities.job.snapshot import Snapshot
from activities.job.volatile import volatile
from activities.projects.exit_codes import decides, found_none
from activities.tools.shell import LOG
from protocol.handoffs import Check, Handoff, Verdict

MOST_NAMED = 10


@dataclass(frozen=True)
class Run:
    """Something that was run."""

    step: int
    tool: str
    told: str
    """`run_command make test: exit code 0`"""
    passed: bool
    flaw: str = ""
    """Why it shows nothing, whatever came of it."""


@dataclass(frozen=True)
class Evidence:
    """What there is to go by."""

    runs: dict[Check, list[Run]] = field(default_factory=dict)
    """For each check, the runs of the tools that prove it, oldest first."""
    changed: int = 0
    """The step at which a file under test last changed; 0 if none did."""
    altered: list[str] = field(default_factory=list)
    """Files under test that are not as they were handed over."""


def evidence_of(snapshot: Snapshot) -> Evidence:
    """What the record says of a tester's job, from one of its checkpoints."""
    link = snapshot.link
    if link is None:
        return Evidence()
    runs = [*_commands(snapshot), *_calls(snapshot)]
    differs = volatile(snapshot.config.shell.volatile)
    handed = Files(snapshot.files.store, link.tree) if link.tree else None
    now, changes = _below(snapshot.files, link.folder), _below(snapshot.changes, link.folder)
    before = {entry.path for entry in handed.walk()} if handed else set()
    steps = [
        int(changes.content(entry))
        for entry in changes.walk()
        if entry.kind == "file"
        and entry.path in before
        and not differs(f"{link.folder}/{entry.path}")
    ]
    return Evidence(
        runs={
            check: [run for run in runs if any(fnmatchcase(run.tool, each) for each in patterns)]
            for check, patterns in link.handoff.proof.items()
        },
        changed=max(steps, default=0),
        altered=[
            f"{link.folder}/{change.path}"
            for change in (diff(handed, now) if handed else ())
            # What running leaves beside the product, or in its caches and logs, is no part of it.
            if change.old is not None and not differs(f"{link.folder}/{change.path}")
        ],
    )


def unproved(handoff: Handoff, verdict: Verdict, found: Evidence) -> list[str]:
    """What a verdict claims and nothing shows, a sentence each."""
    told: list[str] = []
    by_check = {result.check: result for result in verdict.checks}
    if missing := [check for check in handoff.checks if check not in by_check]:
        told.append(f"The verdict says nothing of these checks: {', '.join(missing)}.")
    if found.altered:
        told.append(
            "What is tested stays as it was handed over; put these back and run the checks again: "
            f"{', '.join(found.altered[:MOST_NAMED])}."
        )
    for check in handoff.checks:
        result = by_check.get(check)
        told += _unshown(check, bool(result and result.passed), handoff, found)
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


def _unshown(check: Check, passed: bool, handoff: Handoff, found: Evidence) -> list[str]:
    """Why nothing shows what the verdict says of one check; empty when something does."""
    runs = found.runs.get(check, [])
    if not runs:
        tools = ", ".join(handoff.proof.get(check, [])) or "none"
        return [
            f"The check {check} was not run: there is no result of a tool that does that ({tools})."
        ]
    sound = [run for run in runs if not run.flaw]
    if not sound:
        return [
            f"Nothing that was run shows anything of the check {check}. {runs[-1].told}: "
            f"{runs[-1].flaw}."
        ]
    new = [run for run in sound if run.step >= found.changed]
    if not new:
        return [
            f"The check {check} was run before the files that it is about were last changed; "
            "run it again."
        ]
    # Of what was run more than once the newest counts.
    newest = list({run.told.rpartition(": ")[0]: run for run in new}.values())
    if passed and not any(run.passed for run in newest):
        return [
            f"The check {check} is said to have passed, but no run of it did. {newest[-1].told}. "
            "Run it so that it passes, or say that it did not."
        ]
    return []


def _below(files: Files, folder: str) -> Files:
    entry = files.entry(folder)
    there = entry is not None and entry.kind == "folder"
    return files.below(folder) if there else Files.empty(files.store)


def _commands(snapshot: Snapshot) -> Iterator[Run]:
    """The commands of this job, as the system wrote them down."""
    # Not splitlines: JSON holds some ends of lines as they are.
    for line in filter(None, snapshot.text(LOG).split("\n")):
        entry: dict[str, Any] = json.loads(line)
        code, command = entry["exit_code"], " ".join(entry["command"].split())
        flaw = ""
        if not decides(entry["command"]):
            flaw = (
                "its exit code would not tell whether a test failed, so end the command with the "
                "test itself"
            )
        elif not entry["bytes"]:
            flaw = "it printed nothing, so make it say what was tested"
        elif found_none(entry["end"]):
            flaw = "it found no tests to run"
        ended = entry["trouble"] or f"exit code {code}"
        told = f"run_command {command[:150]}: {ended}"
        yield Run(entry["step"], "run_command", told, code == 0, flaw)


def _calls(snapshot: Snapshot) -> Iterator[Run]:
    """Calls of other tools, of all phases, that were carried out and did not fail."""
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
            if called is None or not isinstance(content, str) or content.startswith("Error: "):
                continue
            if called["name"] == "run_command":
                continue
            head = next((line for line in content.splitlines() if line.strip()), "")
            told = f"{called['name']} {str(called['arguments'])[:100]}: {head[:150]}"
            flaw = "" if content.strip() else "it gave nothing"
            step = int(message["tool_call_id"][1:].partition("c")[0])
            yield Run(step, called["name"], told, True, flaw)

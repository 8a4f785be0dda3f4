"""Evidence for checks that no command can make, such as a look at a page in a browser.

The evidence is tool results in the conversation of a tester's job. Results from before the last
change of the files under test do not count.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from activities.checkpoints import Files, diff_files
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.job.conversation import Conversation
from activities.job.snapshot import Snapshot
from protocol.agent_reports import TesterVerdict
from protocol.handoffs import Handoff
from protocol.proof import Check, Proof
from protocol.short_text import one_line

MAX_NAMED = 10
MAX_PROOFS = 3
"""Tool results kept per check."""


@dataclass(frozen=True)
class ToolRun:
    """A tool call and the start of its result."""

    step: int
    tool: str
    call: str
    """`browser_click {"ref": "e3"}`"""
    head: str
    """The first non-blank line of the result; empty if there is none."""
    phase: int


@dataclass(frozen=True)
class Evidence:
    """Tool results that support a tester's verdict."""

    runs: dict[Check, list[ToolRun]] = field(default_factory=dict)
    """For each check, runs of the tools that prove it, oldest first."""
    changed: int = 0
    """The step at which a file under test last changed; 0 if none did."""
    altered: list[str] = field(default_factory=list)
    """Files under test that differ from the handed-over product."""


def read_evidence(snapshot: Snapshot) -> Evidence:
    """Collect the evidence in a checkpoint of a tester's job."""
    link = snapshot.link
    if link is None:
        return Evidence()
    runs = list(_evidence_tool_runs(snapshot))
    differs = volatile_matcher(snapshot.config.shell.volatile)
    handed = Files(snapshot.files.store, link.tree) if link.tree else None
    now, changes = (
        _evidence_subfolder(snapshot.files, link.folder),
        _evidence_subfolder(snapshot.changes, link.folder),
    )
    before = {entry.path for entry in handed.walk()} if handed else set()
    steps = [
        int(changes.read_entry(entry))
        for entry in changes.walk()
        if entry.kind == "file"
        and entry.path in before
        and not differs(f"{link.folder}/{entry.path}")
    ]
    return Evidence(
        runs={
            check: [run for run in runs if any(fnmatchcase(run.tool, each) for each in patterns)]
            for check, patterns in link.handoff.proof.items()
            if check not in link.handoff.tests
        },
        changed=max(steps, default=0),
        altered=[
            f"{link.folder}/{change.path}"
            for change in (diff_files(handed, now) if handed else ())
            # Files that a run adds, caches and logs are not part of the product.
            if change.old is not None and not differs(f"{link.folder}/{change.path}")
        ],
    )


def verdict_evidence_problems(
    handoff: Handoff, verdict: TesterVerdict, evidence: Evidence
) -> list[str]:
    """Return what is wrong with a verdict, including claims that no tool result supports."""
    problems: list[str] = []
    by_check = {result.check: result for result in verdict.checks}
    if missing := [check for check in handoff.checks if check not in by_check]:
        problems.append(f"The verdict says nothing of these checks: {', '.join(missing)}.")
    looked_at = [check for check in handoff.checks if check not in handoff.tests]
    if looked_at and evidence.altered:
        problems.append(
            "What is tested stays as it was handed over; put these back (`git show HEAD:PATH` has "
            f"them) and look again: {', '.join(evidence.altered[:MAX_NAMED])}."
        )
    for check in looked_at:
        problems += _check_evidence_problems(check, handoff, evidence)
    failed = [check for check, result in by_check.items() if not result.passed]
    if verdict.passed and failed:
        problems.append(f"`passed` cannot be true while these did not pass: {', '.join(failed)}.")
    if not verdict.passed and not failed and not verdict.findings:
        problems.append("`passed` is false: say in `findings` what is wrong.")
    if verdict.passed and handoff.coverage is not None and not handoff.tests:
        if verdict.coverage is None:
            problems.append("A least coverage is asked for: give the measured `coverage`.")
        elif verdict.coverage < handoff.coverage:
            problems.append(
                f"`passed` cannot be true with a coverage of {verdict.coverage:g} %: "
                f"{handoff.coverage:g} % are asked for."
            )
    return problems


def _check_evidence_problems(check: Check, handoff: Handoff, evidence: Evidence) -> list[str]:
    """Return why no tool result supports the verdict on a check; empty if one does."""
    runs = evidence.runs.get(check, [])
    tools = ", ".join(handoff.proof.get(check, [])) or "none"
    way_out = "make the call, or in a phase without that tool hand over a list for it (todo_write)"
    if not runs:
        return [
            f"The check {check} was not run: there is no result of a tool that does that "
            f"({tools}); {way_out}."
        ]
    sound = [run for run in runs if run.head]
    if not sound:
        return [
            f"{runs[-1].call} gave nothing, so that nothing shows the check {check}; {way_out}."
        ]
    if not any(run.step >= evidence.changed for run in sound):
        return [
            f"{sound[-1].call} was before the files that the check {check} is about were last "
            f"changed, so run it again: {way_out}."
        ]
    return []


def tool_proofs(snapshot: Snapshot, commit: str) -> list[Proof]:
    """Return the newest tool results that prove checks which no command can make."""
    if snapshot.link is None:
        return []
    handoff, evidence = snapshot.link.handoff, read_evidence(snapshot)
    return [
        Proof(
            check=check,
            ran=run.call,
            passed=True,
            end=one_line(run.head, 300),
            cut=len(run.head) > 300,
            commit=commit,
            asked_by=handoff.id,
            phase=run.phase,
            step=run.step,
        )
        for check, runs in evidence.runs.items()
        for run in [run for run in runs if run.head and run.step >= evidence.changed][-MAX_PROOFS:]
    ]


def _evidence_subfolder(files: Files, folder: str) -> Files:
    entry = files.entry(folder)
    is_folder = entry is not None and entry.kind == "folder"
    return files.subfolder(folder) if is_folder else Files.empty(files.store)


def _evidence_tool_runs(snapshot: Snapshot) -> Iterator[ToolRun]:
    """Yield successful tool calls of all phases, except commands."""
    earlier = [
        (int(entry.path), Conversation(snapshot.history.subfolder(entry.path)))
        for entry in snapshot.history.children()
        if entry.kind == "folder"
    ]
    for phase, conversation in [*earlier, (snapshot.state.phase.number, snapshot.conversation)]:
        calls: dict[str, dict[str, Any]] = {}
        for raw in conversation.stored_messages():
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
            step = int(message["tool_call_id"][1:].partition("c")[0])
            call = f"{called['name']} {one_line(str(called['arguments']), 200)}"
            yield ToolRun(step, called["name"], call, head, phase)

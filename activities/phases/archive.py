"""Archive pages: what a phase planned and what came of it, as two files per phase."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from activities.checkpoints import Files
from activities.job.context_summary import summary_transcript_line
from activities.job.snapshot import Snapshot
from activities.text.safe_text import cut_middle, replace_surrogates
from activities.text.tokens import count_tokens
from protocol.phase import Phase
from protocol.todo_list import Todo

Outcome = Literal["completed", "rewound", "forked", "closed"]
MAX_SUMMARY = 4000
TRANSCRIPT_CHARACTERS = 60_000
TRANSCRIPT_TOKENS = 15_000
"""Limit for text in scripts with more tokens than characters."""
MESSAGE_CHARACTERS = 1_000
PAGE = re.compile(r"archive/phase_(\d+)\.(md|yaml)")
FORKED = "Not begun in this job, which was forked here."
UNDONE = "> Undone by a later rewind.\n\n"


@dataclass(frozen=True)
class ArchivePage:
    """`phase_NNN.yaml` for programs and `phase_NNN.md` for people."""

    data: str
    text: str


def archive_page(
    snapshot: Snapshot,
    outcome: Outcome,
    issue: str,
    summary: str,
    *,
    by: str = "",
    acts: Sequence[str] = (),
) -> ArchivePage:
    phase, by = snapshot.state.phase, " ".join(by.split())
    data: dict[str, Any] = {
        "phase": phase.name,
        "number": phase.number,
        "kind": phase.kind,
        "description": phase.description,
        "outcome": outcome,
        "steps_until": snapshot.state.step,
    }
    if issue:
        data["issue"] = issue
    if by:
        data["by"] = by
    remarks = [remark for remark in snapshot.state.remarks if remark.phase == phase.number]
    if remarks:
        data["remarks"] = [{"by": each.by or "a person", "text": each.text} for each in remarks]
    acts = [replace_surrogates(" ".join(act.split())) for act in acts]
    if acts:
        data["people"] = acts
    data["todos"] = [
        {
            "id": todo.id,
            "content": todo.content,
            "status": _archived_todo_status(todo, phase, outcome),
            **({"items": todo.items} if todo.items else {}),
            **({"notes": todo.notes} if todo.notes else {}),
        }
        for todo in phase.todos
    ]
    lines = [f"# Phase {phase.number}: {phase.name} ({phase.kind}, {outcome})", ""]
    if phase.description:
        lines += [phase.description, ""]
    if issue:
        lines += [f"## Issue, from {by}" if by else "## Issue", "", issue, ""]
    if remarks:
        lines += ["## What people said", ""]
        lines += [f"- {each.by or 'a person'}: {' '.join(each.text.split())}" for each in remarks]
        lines += [""]
    if acts:
        lines += ["## What people did", "", *(f"- {act}" for act in acts), ""]
    lines += _archived_todo_lines(phase, outcome)
    has_notes = any(todo.notes for todo in phase.todos)
    without = "The notes on the todos above." if has_notes else "No notes were made."
    text = summary.strip()[:MAX_SUMMARY] or without
    lines += ["", "## Summary", "", text, ""]
    yaml_text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return ArchivePage(yaml_text, "\n".join(lines))


def _archived_todo_lines(phase: Phase, outcome: Outcome) -> list[str]:
    lines = ["## Todos", ""]
    for todo in phase.todos:
        status = _archived_todo_status(todo, phase, outcome)
        lines.append(f"- [{'x' if todo.done else ' '}] {todo.id}. {todo.content} ({status})")
        if todo.notes:
            lines.append(f"  Notes: {' '.join(todo.notes.split())}")
    return lines


def archive_prompt(snapshot: Snapshot) -> str:
    compaction = snapshot.compaction
    messages = snapshot.conversation.messages(max(1, compaction.folded))
    lines = [summary_transcript_line(message, MESSAGE_CHARACTERS) for message in messages]
    if compaction.summary:
        lines.insert(0, f"Notes on the part before:\n{compaction.summary}")
    mark = "[TRUNCATED the middle of the phase]"
    text = cut_middle("\n\n".join(lines), TRANSCRIPT_CHARACTERS, mark)
    while (tokens := count_tokens(text)) > TRANSCRIPT_TOKENS:
        text = cut_middle(text, len(text) * 9 * TRANSCRIPT_TOKENS // (10 * tokens), mark)
    phase = snapshot.state.phase
    return f'Phase {phase.number} ({phase.kind}) "{phase.name}":\n\n{text}'


def archive_stem(phase: Phase) -> str:
    return f"archive/phase_{phase.number:03d}"


def archive_phase(files: Files, phase: Phase, page: ArchivePage) -> Files:
    stem = archive_stem(phase)
    return files.write(f"{stem}.yaml", page.data.encode()).write(f"{stem}.md", page.text.encode())


def with_undone_archive_pages(restored: Files, present: Files, since: int) -> Files:
    """Return the restored files plus the archive pages of undone phases, marked as undone.

    Args:
        since: Number of that phase; it and all later ones are undone.
    """
    for entry in present.children("archive"):
        page = PAGE.fullmatch(entry.path)
        if page is None or int(page[1]) < since:
            continue
        text = present.read(entry.path).decode()
        if page[2] == "md" and UNDONE not in text:
            title, _, rest = text.partition("\n\n")
            text = f"{title}\n\n{UNDONE}{rest}"
        elif page[2] == "yaml" and not text.startswith("undone:"):
            text = f"undone: true\n{text}"
        restored = restored.write(entry.path, text.encode())
    return restored


def _archived_todo_status(todo: Todo, phase: Phase, outcome: Outcome) -> str:
    if todo.done:
        return "completed"
    if not todo.needed:
        return "passed over"
    return "interrupted" if todo is phase.current and outcome == "rewound" else "pending"

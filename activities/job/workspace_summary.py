"""`workspace_summary.md`: a list of what is there, made without a model call."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from activities.checkpoints import FileEntry, Files, diff_files
from activities.checkpoints.sharded_tree import FILE, FOLDER
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.job.snapshot import Snapshot
from activities.text.safe_text import replace_surrogates
from protocol import scope_ledger
from protocol.job_state import JobState
from protocol.repository_link import RepositoryLink
from protocol.short_text import as_sentence, one_line

ACCOMPLISHED = "Accomplished in this phase"
BEFORE = "Done before the phase was given up"
MAX_FILES = 500
PURPOSE_CHARACTERS = 90
HEAD_BYTES = 4000
SUMMARY = "workspace_summary.md"
MANY_ALIKE = 10
MOST_ISSUES = 20
_LISTED = re.compile(r"- (.+?) · [\d,]+ bytes · step \d")
_PAGE_MARK = re.compile(r"\[page \d+\b.*\]")
_DIGITS = re.compile(r"\d+")


def workspace_summary(
    files: Files,
    changes: Files,
    state: JobState,
    unlisted: Sequence[str] = (),
    *,
    repository: RepositoryLink | None = None,
    given_up: bool = False,
) -> str:
    """Return the text of `workspace_summary.md`, a function of the checkpoint alone (no times)."""
    phase = state.phase
    done = [todo for todo in phase.todos if todo.done]
    lines = [
        "# Workspace summary",
        "",
        f"Phase {phase.number} ({phase.kind}): {phase.name}, step {state.step}.",
        f"Progress: {len(done)}/{len(phase.todos)} todos"
        + (f", plan {phase.plan_position} of {phase.plan_total}." if phase.plan_total else "."),
        "",
        "## Files",
        "",
    ]
    differs = volatile_matcher(unlisted)
    present, untouched = _workspace_summary_entries(files, repository, differs)
    lines += [untouched] if untouched else []
    listed = [
        entry
        for entry in present
        if not (entry.path.startswith((SUMMARY, "tools/", "skills/")) or differs(entry.path))
    ]
    for entry in listed[:MAX_FILES]:
        lines.append(_workspace_summary_line(files, changes, entry))
    if len(listed) > MAX_FILES:
        lines.append(f"- … and {len(listed) - MAX_FILES} more; list_files shows a folder")
    lines += ["", f"## {BEFORE if given_up else ACCOMPLISHED}", ""]
    lines += [
        f"- {as_sentence(todo.content)} Notes: {one_line(todo.notes, 300)}"
        if todo.notes
        else f"- {todo.content}"
        for todo in done
    ] or ["- nothing" if given_up else "- nothing yet"]
    if phase.current:
        lines += ["", "## Given up with it" if given_up else "## Open", ""]
        lines += [f"- {todo.content}" for todo in phase.open_todos]
    if state.scope:
        lines += ["", "## Scope", ""]
        lines += [f"{scope_ledger.scope_ledger_line(state.scope)}."]
        lines += [f"- open: {item.id} {item.text}" for item in state.open_scope[:50]]
    lines += _listed_part("Blocking", _blocking_issues(state))
    lines += _listed_part("Notes", [remark.line for remark in state.remarks])
    return replace_surrogates("\n".join(lines) + "\n")


def _blocking_issues(state: JobState) -> list[str]:
    issue = [f"the last attempt failed: {one_line(state.issue, 500)}"] if state.issue else []
    waits = [
        f"a write waits for its store: {one_line(write.about or write.kind, 100)}"
        for write in state.deferred_writes
    ]
    return [*issue, *waits[:MOST_ISSUES]]


def _listed_part(heading: str, entries: Sequence[str]) -> list[str]:
    return ["", f"## {heading}", "", *(f"- {entry}" for entry in entries)] if entries else []


def condense_file_list(text: str) -> str:
    """Return the summary's file list for a phase's first message, which has todos and scope
    elsewhere.

    Many files whose paths differ only in numbers become one line; the summary file lists each.
    """
    text = text.partition(f"\n## {ACCOMPLISHED}")[0].partition(f"\n## {BEFORE}")[0]
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        if match := _LISTED.match(line):
            groups.setdefault(_DIGITS.sub("*", match[1]), []).append(line)
    lines: list[str] = []
    for line in text.splitlines():
        match = _LISTED.match(line)
        alike = _DIGITS.sub("*", match[1]) if match else ""
        members = groups.get(alike, [])
        if len(members) < MANY_ALIKE:
            lines.append(line)
        elif line == members[0]:
            last = members[-1].removeprefix("- ")
            lines.append(f"- {alike} · {len(members)} files, each in {SUMMARY}; the last: {last}")
    return "\n".join(lines)


def with_workspace_summary(
    snapshot: Snapshot, state: JobState | None = None, *, given_up: bool = False
) -> Files:
    """Return the workspace with an updated `workspace_summary.md`, for the given state if any."""
    text = workspace_summary(
        snapshot.files,
        snapshot.changes,
        state or snapshot.state,
        snapshot.config.shell.volatile,
        repository=snapshot.repository,
        given_up=given_up,
    )
    return snapshot.files.write(SUMMARY, text.encode())


def _workspace_summary_entries(
    files: Files, repository: RepositoryLink | None, differs: Callable[[str], bool]
) -> tuple[list[FileEntry], str]:
    """Return the files without unchanged ones of a repository, and a line about those."""
    raw = files.tree_entry((repository.folder,)) if repository else None
    if repository is None or raw is None or raw.mode != FOLDER:
        return list(files.walk()), ""
    folder, origin = repository.folder, repository.origin
    now = Files(files.store, raw.id.hex())
    before = Files(files.store, repository.tree)
    changes = [
        change for change in diff_files(before, now) if not differs(f"{folder}/{change.path}")
    ]
    changed = [
        replace(change.new, path=f"{folder}/{change.path}") for change in changes if change.new
    ]
    removed = len(changes) - len(changed)
    line = (
        f"- {folder}/ · {origin.file_count:,} files of {origin.source} at {origin.commit[:12]}; "
        f"{len(changes):,} differ now" + (f", {removed:,} of them deleted" if removed else "")
    )
    return [*files.with_tree_entry((folder,), None).walk(), *changed], line


def _workspace_summary_line(files: Files, changes: Files, entry: FileEntry) -> str:
    if entry.kind == "folder":
        return f"- {entry.path}/ (empty)"
    step = changes.tree_entry(tuple(entry.path.split("/")))
    # After a rewind a file may have replaced a folder that `changes` still names.
    changed = changes.store.read(step.id).decode() if step and step.mode == FILE else "0"
    purpose = _workspace_file_purpose(files, entry)
    return f"- {entry.path} · {entry.size:,} bytes · step {changed}" + (
        f" · {purpose}" if purpose else ""
    )


def _workspace_file_purpose(files: Files, entry: FileEntry) -> str:
    """Return a file's first heading, else its first line with words; a page's number says none."""
    if entry.kind != "file":
        return "link"
    head = files.read_entry(entry)[:HEAD_BYTES].decode(errors="replace")
    if "\x00" in head:
        return "binary"
    lines = [line.strip() for line in head.splitlines() if any(c.isalnum() for c in line)]
    lines = [line for line in lines if not _PAGE_MARK.fullmatch(line)]
    heading = next((line.lstrip("# ") for line in lines if line.startswith("#")), None)
    return one_line(heading or (lines[0] if lines else ""), PURPOSE_CHARACTERS)

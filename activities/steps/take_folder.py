"""Imports what a person edited in the folder of a paused job."""

from collections.abc import Sequence
from contextlib import suppress

from activities.checkpoints import (
    Change,
    Files,
    FilesError,
    PathRefused,
    Root,
    diff_files,
    diff_lines,
    take_edits,
)
from activities.job.activity_context import open_activity_snapshot
from activities.job.brief_statements import brief_statements
from activities.job.job_folder import pack_full_job_journal
from activities.job.remarks import add_remarks_to_instructions
from activities.phases.snapshot_transition import complete_steps_ticked_by_person
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.steps.root_activity import thread_activity
from activities.text.safe_text import replace_surrogates
from activities.toolkit.path_ownership import leave_out_refused_edits, restore_unreadable_files
from protocol.job_state import JobState
from protocol.requests import ImportReply, TakeFolderRequest
from protocol.scope_ledger import Statement
from protocol.short_text import first_few, one_line

INSTRUCTIONS = "instructions.md"
NAMED_PATHS = 8


@thread_activity
def take_folder(root: Root, request: TakeFolderRequest) -> ImportReply:
    """Commit the edits that a person made in the folder of a paused job."""
    snapshot = open_activity_snapshot(root, request)
    before = snapshot.files
    edited, notes = take_edits(snapshot.checkpoints, root, activity_job_id(), before)
    snapshot.files = leave_out_refused_edits(before, edited, notes)
    restore_unreadable_files(snapshot, before, notes)
    add_remarks_to_instructions(snapshot)
    changes = list(diff_files(before, snapshot.files))
    if snapshot.files == before:
        return ImportReply(commit=request.commit, at=activity_schedule_seconds(), notes=notes[:20])
    snapshot.record_changes(before)
    paths = name_edited_paths(changes, NAMED_PATHS)
    ledger = snapshot.state.model_copy(deep=True)
    changed = {change.path for change in changes}
    if "plan.md" in changed:
        complete_steps_ticked_by_person(snapshot, request.by)
    if INSTRUCTIONS in changed:
        notes += add_items_of_edit(snapshot.state, before, snapshot.files)
    timestamp = activity_schedule_seconds()
    commit = snapshot.save(
        snapshot.commit_message(f"{replace_surrogates(request.by) or 'a person'} edited {paths}"),
        timestamp,
    )
    # Pack here, where the job waits for a person, so that no step is delayed.
    pack_full_job_journal(snapshot.checkpoints, activity_job_id())
    return ImportReply(
        commit=commit,
        at=timestamp,
        notes=notes[:20],
        edits=describe_edits(before, snapshot.files, changes),
        paths=paths,
        scope=snapshot.state.items_changed_since(ledger.scope),
    )


def add_items_of_edit(state: JobState, before: Files, after: Files) -> list[str]:
    """Add what a person wrote into the instructions to the scope; return notes for people."""
    known = {each.text for each in brief_statements(_instructions(before), INSTRUCTIONS)}
    notes = list[str]()
    for statement in brief_statements(_instructions(after), INSTRUCTIONS):
        if statement.text in known:
            continue
        try:
            item = state.add_item(statement.text, "told")
        except ValueError as full:
            return [*notes, str(full)]
        place = f"{INSTRUCTIONS}:{statement.line}"
        item.statements = [Statement(text=item.text, place=place, paths=list(statement.paths))]
        notes.append(f"{item.id} is added to the scope: {one_line(item.text, 100)}")
    return notes


def _instructions(files: Files) -> str:
    with suppress(FilesError, PathRefused):
        return files.read(INSTRUCTIONS).decode(errors="replace")
    return ""


MAX_PATHS = 20
MAX_CHARACTERS = 6000


def describe_edits(old: Files, new: Files, changes: Sequence[Change]) -> str:
    """Return the paths that a person changed, and bounded diffs, of the instructions first."""
    if not changes:
        return ""
    first = _sort_edits_to_describe(changes)
    text = f"A person edited the files while the job was paused: {name_edited_paths(changes)}."
    if first[0].path == INSTRUCTIONS:
        text += " The instructions are in force as they are now."
    remaining, lines = MAX_CHARACTERS, [text]
    for change in first[:MAX_PATHS]:
        for line in diff_lines(old, new, change, ("before", "now")) or ():
            remaining -= len(line)
            if remaining < 0:
                return "\n".join([*lines, "… and more; read the files."])
            lines.append(replace_surrogates(line.rstrip("\n")))
    return "\n".join(lines)


def name_edited_paths(changes: Sequence[Change], most: int = MAX_PATHS) -> str:
    """Return `instructions.md, notes/a.md (new) and 3 more`, the instructions first."""
    return first_few(
        [_edit_path_label(change) for change in _sort_edits_to_describe(changes)], most
    )


def _sort_edits_to_describe(changes: Sequence[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (change.path != INSTRUCTIONS, change.path))


def _edit_path_label(change: Change) -> str:
    if change.old is None:
        return f"{replace_surrogates(change.path)} (new)"
    return replace_surrogates(change.path) + (" (removed)" if change.new is None else "")

"""What the system sees of a call: work, a look, or nothing that counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from activities.checkpoints import Change
from activities.commands.pipelines import simple_commands
from activities.text.safe_text import replace_surrogates
from activities.toolkit.path_ownership import is_work_path
from activities.toolkit.registry import Tool
from protocol.evidence import MOST_SEEN
from protocol.job_state import JobState
from protocol.short_text import one_line

RHYTHM = frozenset(("todos", "job", "traces", "discovery", "skills", "verdict"))
"""Groups of tools that only move the job along."""
LOOKING_PROGRAMS = frozenset(
    (
        *("[", "basename", "cal", "cat", "cd", "date", "df", "diff", "dirname", "du", "echo"),
        *("env", "exit", "expr", "false", "file", "find", "grep", "egrep", "fgrep", "rg", "head"),
        *("hostname", "id", "less", "ls", "more", "printf", "ps", "pwd", "sleep", "sort", "stat"),
        *("tail", "test", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami", ":"),
    )
)
"""Programs that change nothing: a command of these alone is a look, unless it changed a file."""
COMMAND_CHARACTERS = 80


def note_seen_work(
    state: JobState,
    entry: Tool,
    arguments: dict[str, Any],
    changes: Sequence[Change],
    *,
    failed_command: bool,
) -> None:
    """Record what a call that ran did, for the current todo and for its phase.

    Args:
        state: The state after the call.
        entry: The tool.
        arguments: The call's arguments.
        changes: What it changed in the workspace.
        failed_command: Whether a command did not end with 0.
    """
    if entry.group in RHYTHM:
        return
    paths = [replace_surrogates(change.path) for change in changes]
    files = [path for path in paths if is_work_path(path)]
    gone = {path for path, change in zip(paths, changes, strict=True) if change.new is None}
    command = one_line(replace_surrogates(str(arguments.get("command", ""))), COMMAND_CHARACTERS)
    ran = "" if failed_command else f"{command}: exit code 0" if command else entry.name
    has_effect = entry.has_effect
    if entry.group == "shell":
        has_effect = not failed_command and not _only_looks(str(arguments.get("command", "")))
    if files or has_effect:
        for seen in (state.seen, state.phase_seen):
            seen.add_work(files, ran if has_effect else "", gone)
        return
    looked = command or next(
        (str(arguments[key]) for key in ("path", "url", "query") if arguments.get(key)), entry.name
    )
    kept = [path for path in paths if path.startswith("notes/")]
    for seen in (state.seen, state.phase_seen):
        seen.add_look(replace_surrogates(looked))
        seen.kept = list(dict.fromkeys([*seen.kept, *kept]))[-MOST_SEEN:]


def _only_looks(command: str) -> bool:
    """Return whether each program of a command is one that changes nothing; git by its word."""
    programs = simple_commands(command)
    looks = {"status", "diff", "log", "show", "blame", "branch", "ls-files", "grep", "rev-parse"}
    return all(
        words[0].rpartition("/")[2] in LOOKING_PROGRAMS
        or (words[0].rpartition("/")[2] == "git" and any(word in looks for word in words[1:3]))
        for words in programs
    )

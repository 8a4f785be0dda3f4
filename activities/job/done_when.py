"""`done_when` of a todo: what must hold before it counts as done, looked up in the workspace."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import re2
from pydantic import ValidationError

from activities.checkpoints import Files, FilesError, PathRefused, parse
from activities.text.plain import plain
from config.patterns import compiled, why_not
from protocol.state import DoneWhen
from protocol.validation_errors import all_errors

if TYPE_CHECKING:
    from activities.commands.check_commands import Checks

SHOWN = 300
"""Characters of a file that a refusal shows."""
NO_COMMANDS = "no command can be run here; use file_exists or matches"


def read_done_when(value: Any) -> DoneWhen:
    """A condition as somebody wrote it.

    Raises:
        ValueError: in a line, what is wrong with it.
    """
    try:
        return checked(DoneWhen.model_validate(value))
    except ValidationError as error:
        raise ValueError(all_errors(error)) from None


def checked(condition: DoneWhen) -> DoneWhen:
    """The condition, if its path and its pattern can be used; else a ValueError."""
    try:
        if condition.matches:
            parse(condition.matches.path)
            compiled(condition.matches.pattern)
        elif condition.file_exists:
            parse(condition.file_exists)
    except PathRefused as refused:
        raise ValueError(str(refused)) from None
    except re2.error as error:
        raise ValueError(f"pattern is not valid RE2: {why_not(error)}") from None
    return condition


def unmet(files: Files, condition: DoneWhen | None, checks: Checks | None = None) -> str | None:
    """What was found instead of what must hold, or None when it holds.

    Args:
        checks: Runs a command. Without it none can be.
    """
    if condition is None:
        return None
    found: str | None
    if condition.command:
        found = NO_COMMANDS
        if checks:
            finding = checks.finding(files, condition.command, checks.config.shell.seconds)
            found = finding.text if finding else None
    else:
        found = _missing(files, condition)
    return f"Not done yet: it is done when {condition.line}. {found}" if found else None


def _missing(files: Files, condition: DoneWhen) -> str | None:
    try:
        if condition.matches is None:
            return _no_file(files, condition.file_exists or "")
        path = condition.matches.path
        entry = files.entry(path)
        if entry is None or entry.kind == "folder":
            return f"There is no file {path}."
        text = files.read(path).decode(errors="replace")
    except (FilesError, PathRefused) as problem:
        return str(problem)
    if compiled(condition.matches.pattern).search(text):
        return None
    shown = text[:SHOWN] + ("…" if len(text) > SHOWN else "")
    return f"Nothing in {path} matches; it has {len(text):,} characters" + (
        f" and begins:\n{shown}" if shown.strip() else "."
    )


def _no_file(files: Files, wanted: str) -> str | None:
    if files.entry(wanted) is not None:
        return None
    if any(fnmatchcase(entry.path, wanted) for entry in files.walk()):
        return None
    folder = wanted.rpartition("/")[0]
    there = files.entry(folder) if folder else None
    beside = [plain(e.path) for e in files.children(folder)][:20] if there or not folder else []
    return f"There is no {wanted}; beside it there is {', '.join(beside) or 'nothing'}."

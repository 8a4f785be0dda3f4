"""`done_when` of a todo: what must hold before it counts as done, looked up in the workspace."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import re2
from pydantic import ValidationError

from activities.checkpoints import Files, FilesError, PathRefused, parse_path
from activities.text.plain import replace_surrogates
from config.patterns import compile_cached, why_not
from protocol.state import DoneWhen
from protocol.validation_errors import all_errors

if TYPE_CHECKING:
    from activities.commands.check_commands import CheckRunner

SHOWN_CHARACTERS = 300
"""Characters of a file that a refusal shows."""
NO_COMMANDS = "no command can be run here; use file_exists or matches"


def read_done_when(value: Any) -> DoneWhen:
    """A condition as somebody wrote it.

    Raises:
        ValueError: in a line, what is wrong with it.
    """
    try:
        return check_condition(DoneWhen.model_validate(value))
    except ValidationError as error:
        raise ValueError(all_errors(error)) from None


def check_condition(condition: DoneWhen) -> DoneWhen:
    """The condition, if its path and its pattern can be used; else a ValueError."""
    try:
        if condition.matches:
            parse_path(condition.matches.path)
            compile_cached(condition.matches.pattern)
        elif condition.file_exists:
            parse_path(condition.file_exists)
    except PathRefused as refused:
        raise ValueError(str(refused)) from None
    except re2.error as error:
        raise ValueError(f"pattern is not valid RE2: {why_not(error)}") from None
    return condition


def unmet_reason(
    files: Files, condition: DoneWhen | None, checks: CheckRunner | None = None
) -> str | None:
    """What was found instead of what must hold, or None when it holds.

    Args:
        checks: Runs a command. Without it none can be.
    """
    if condition is None:
        return None
    problem: str | None
    if condition.command:
        problem = NO_COMMANDS
        if checks:
            finding = checks.run_check(files, condition.command, checks.config.shell.seconds)
            problem = finding.text if finding else None
    else:
        problem = _content_problem(files, condition)
    return f"Not done yet: it is done when {condition.line}. {problem}" if problem else None


def _content_problem(files: Files, condition: DoneWhen) -> str | None:
    try:
        if condition.matches is None:
            return _missing_file(files, condition.file_exists or "")
        path = condition.matches.path
        entry = files.entry(path)
        if entry is None or entry.kind == "folder":
            return f"There is no file {path}."
        text = files.read(path).decode(errors="replace")
    except (FilesError, PathRefused) as problem:
        return str(problem)
    if compile_cached(condition.matches.pattern).search(text):
        return None
    shown = text[:SHOWN_CHARACTERS] + ("…" if len(text) > SHOWN_CHARACTERS else "")
    return f"Nothing in {path} matches; it has {len(text):,} characters" + (
        f" and begins:\n{shown}" if shown.strip() else "."
    )


def _missing_file(files: Files, pattern: str) -> str | None:
    if files.entry(pattern) is not None:
        return None
    if any(fnmatchcase(entry.path, pattern) for entry in files.walk()):
        return None
    folder = pattern.rpartition("/")[0]
    there = files.entry(folder) if folder else None
    beside = (
        [replace_surrogates(e.path) for e in files.children(folder)][:20]
        if there or not folder
        else []
    )
    return f"There is no {pattern}; beside it there is {', '.join(beside) or 'nothing'}."

"""Templates that make guards from patterns; pure functions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from activities.learning.call_moments import CallMoment
from activities.learning.trace_patterns import Pattern
from config.regexes import compile_cached_pattern
from config.schema.guards import FieldMatch, Guard, Match

WRITES = ("write_file", "append_file", "edit_file", "delete_file")
LOGS = ("*.log", "*.log.*", "*[-_.]log.txt", "logs/*", "*/logs/*")
LOG_LINES = 1000
MAX_NAMED_FILES = 3
"""A guard names up to this many single files; for more, it uses a folder or an extension."""
EVIDENCE_TOOLS = ("run_command", "fetch_page", "*__*")
"""Tools whose results can prove a claim: commands, pages, tools of servers."""
CLAIM = r"(?i)\b(?:test|verif|check|prüf)"
"""Text of a todo that is about a proof."""
FEATURE_LISTS = ("feature-list.json", "feature_list.json")
TESTED = "tested"
MAX_NAME_CHARACTERS = 64
"""Longest guard name, in characters."""
_LOST = re.compile(r"[^a-z0-9_./* -]")
"""Characters that a guard's name drops; a dash for a space or a slash loses nothing."""
DEFAULT_LESSON = "People have refused this again and again."


def guard_from_template(pattern: Pattern, moments: Sequence[CallMoment]) -> Guard | None:
    """Return a guard that refuses such calls; None if no template fits.

    Args:
        moments: The known calls of the pattern's traces.
    """
    lesson = pattern.lesson or DEFAULT_LESSON
    return (
        _unproved_claim_template(pattern, moments, lesson) or _long_logs_template(pattern, lesson)
        or _misplaced_files_template(pattern, lesson)
    )  # fmt: skip


def _unproved_claim_template(
    pattern: Pattern, moments: Sequence[CallMoment], lesson: str
) -> Guard | None:
    """Refuse marking something as tested although nothing was run for it."""
    if not moments or any(map(_has_proof, moments)) or not all(map(_can_prove, moments)):
        return None
    if pattern.tool == "todo_complete":
        if not all(
            compile_cached_pattern(CLAIM).search(moment.situation.todo) for moment in moments
        ):
            return None
        kinds = {moment.situation.phase for moment in moments}
        return Guard(
            name="todo_complete.unproved",
            point="todo_complete",
            match=Match(
                tool=[pattern.tool],
                todo=CLAIM,
                not_ran=list(EVIDENCE_TOOLS),
                phase=kinds.pop() if len(kinds) == 1 else None,
            ),
            decision="deny",
            message=lesson,
        )
    if pattern.tool in WRITES and all(map(_sets_tested, moments)):
        paths = [spelled for name in FEATURE_LISTS for spelled in (name, f"*/{name}")]
        return Guard(
            name="tested.unproved",
            point="before_tool",
            match=Match(changes=FieldMatch(path=paths, field=TESTED), not_ran=list(EVIDENCE_TOOLS)),
            decision="deny",
            message=lesson,
        )
    return None


def _long_logs_template(pattern: Pattern, lesson: str) -> Guard | None:
    """Refuse reading logs whole."""
    if pattern.tool != "read_file" or not _every_trace_has_path(pattern):
        return None
    if not all(any(fnmatchcase(path.lower(), log) for log in LOGS) for path in pattern.paths):
        return None
    return Guard(
        name="read_file.logs",
        point="before_tool",
        match=Match(tool=["read_file"], path=list(LOGS), reads_lines=LOG_LINES),
        decision="deny",
        message=lesson,
    )


def _misplaced_files_template(pattern: Pattern, lesson: str) -> Guard | None:
    """Refuse writing files where they do not belong."""
    patterns = _guard_path_patterns(pattern.paths) if _every_trace_has_path(pattern) else []
    if pattern.tool not in WRITES or not patterns:
        return None
    return Guard(
        name=template_guard_name(f"{pattern.tool}.{patterns[0]}"),
        point="before_tool",
        match=Match(tool=[pattern.tool], path=patterns),
        decision="deny",
        message=lesson,
    )


def template_guard_name(text: str) -> str:
    """Return a text as a guard's name, with a hash at the end if characters were dropped."""
    plain = re.sub(r"[^a-z0-9_.-]+", "-", text.lower().replace("/*", "")).strip("-.")
    if len(plain) <= MAX_NAME_CHARACTERS and not _LOST.search(text):
        return plain or "guard"
    # Long texts or other scripts would otherwise share a name, and the first guard would pass for
    # the answer to all of them.
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{plain[: MAX_NAME_CHARACTERS - 9].rstrip('-.')}-{mark}".lstrip("-")


def _has_proof(moment: CallMoment) -> bool:
    return any(_is_proof_tool(tool) for tool in moment.situation.tools_run)


def _can_prove(moment: CallMoment) -> bool:
    """Whether the agent has any tool with which it could prove the claim."""
    return any(_is_proof_tool(tool) for tool in moment.tools)


def _is_proof_tool(tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in EVIDENCE_TOOLS)


def _sets_tested(moment: CallMoment) -> bool:
    arguments = moment.situation.arguments
    named = PurePosixPath(str(arguments.get("path", ""))).name
    return named in FEATURE_LISTS and TESTED in json.dumps(arguments)


def _every_trace_has_path(pattern: Pattern) -> bool:
    return bool(pattern.paths) and all(row.path for row in pattern.traces)


def _guard_path_patterns(paths: list[str]) -> list[str]:
    """Return the shell patterns that these paths share; empty if none."""
    if len(paths) <= MAX_NAMED_FILES and len({PurePosixPath(path).parts[:1] for path in paths}) > 1:
        return paths
    folders = {path.partition("/")[0] for path in paths if "/" in path}
    if len(folders) == 1 and all("/" in path for path in paths):
        return [f"{folders.pop()}/*"]
    endings = {PurePosixPath(path).suffix for path in paths}
    if len(endings) == 1 and (ending := endings.pop()):
        return [f"*{ending}"]
    return paths if len(paths) <= MAX_NAMED_FILES else []

"""A guard for a pattern, by templates; a change to a prompt where none fits. Pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from activities.learning.patterns import Pattern
from config.guarding import Guard, Match
from config.learned import Learned

WRITES = ("write_file", "append_file", "edit_file", "delete_file", "make_folder")
LOGS = ("*.log", "*.log.*", "*[-_.]log.txt", "logs/*", "*/logs/*")
LOG_LINES = 1000
NAMED = 3
"""So many single files are named by a guard; of more it takes a folder or an ending."""
OF_PEOPLE = ("person", "hook")
"""Who refuses from outside: what they say can become a guard. What a guard or gate refuses is
refused already, and only a prompt keeps the agent from trying."""
SHOWN = 10


def propose(pattern: Pattern, at: int) -> Learned:
    """One proposal for a pattern, with its evidence.

    Args:
        pattern: Past its threshold.
        at: Now, epoch seconds.
    """
    guard = _guard(pattern) if pattern.source in OF_PEOPLE else None
    by = guard.name if guard else _slug(f"{pattern.guard or pattern.source}.prompt")
    name = _slug(f"{pattern.project}.{pattern.agent}.{by}".strip("."))
    numbers = [f"T{row.id}" for row in pattern.traces]
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return Learned(
        name=name,
        stage="experiment" if guard else "draft",
        at=at,
        since=at,
        why="proposed from a pattern",
        agent=pattern.agent,
        project=pattern.project,
        evidence=[pattern.told, f"traces {', '.join(numbers[:SHOWN])}{more}"],
        guard=guard.model_copy(update={"name": name}) if guard else None,
        prompt="" if guard else _prompt(pattern),
    )


def _guard(pattern: Pattern) -> Guard | None:
    paths = pattern.paths
    if not paths or len(paths) < len({row.path for row in pattern.traces}):
        return None
    lesson = pattern.lesson or "People have refused this again and again."
    if pattern.tool == "read_file" and all(_is_log(path) for path in paths):
        return Guard(
            name="read_file.logs",
            point="before_tool",
            match=Match(tool=["read_file"], path=list(LOGS), reads_lines=LOG_LINES),
            decision="deny",
            message=lesson,
        )
    patterns = _common(paths)
    if pattern.tool in WRITES and patterns:
        return Guard(
            name=_slug(f"{pattern.tool}.{patterns[0]}"),
            point="before_tool",
            match=Match(tool=[pattern.tool], path=patterns),
            decision="deny",
            message=lesson,
        )
    return None


def _is_log(path: str) -> bool:
    return any(fnmatchcase(path.lower(), pattern) for pattern in LOGS)


def _common(paths: list[str]) -> list[str]:
    """Shell patterns that these paths have in common; empty: nothing."""
    if len(paths) <= NAMED and len({PurePosixPath(path).parts[0] for path in paths}) > 1:
        return paths
    folders = {path.partition("/")[0] for path in paths if "/" in path}
    if len(folders) == 1 and all("/" in path for path in paths):
        return [f"{folders.pop()}/*"]
    endings = {PurePosixPath(path).suffix for path in paths}
    if len(endings) == 1 and (ending := endings.pop()):
        return [f"*{ending}"]
    return paths if len(paths) <= NAMED else []


def _prompt(pattern: Pattern) -> str:
    said = f"It is answered: {pattern.lesson}" if pattern.lesson else "See the traces."
    return (
        f"Agent {pattern.agent} keeps running into {pattern.source} {pattern.guard}"
        f"{f' with {pattern.tool}' if pattern.tool else ''}. No guard helps, since it is refused "
        f"already or fits no template: say in the agent's prompt or todos what to do. {said}"
    )


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9_.-]+", "-", text.lower().replace("/*", "")).strip("-.")
    return plain[:64].rstrip("-.") or "guard"

"""Propose an answer to a pattern: a guard by template, a stricter guard, or a prompt. Pure."""

import hashlib
import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from activities.guards.matching import (
    GuardSituation,
    count_lines_for_matching,
    guard_matched_length,
    would_match_guard,
)
from activities.learning.finished_jobs import CallMoment
from activities.learning.trace_patterns import Pattern, pattern_reason
from config.learned_guards import LearnedRevision
from config.regexes import compile_cached_regex
from config.schema.guards import FieldMatch, Guard, Match
from protocol.short_text import first_few

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
_LOST = re.compile(r"[^a-z0-9_./* -]")
"""Characters that a guard's name drops; a dash for a space or a slash loses nothing."""
DEFAULT_LESSON = "People have refused this again and again."


def guard_from_template(pattern: Pattern, moments: Sequence[CallMoment]) -> Guard | None:
    lesson = pattern.lesson or DEFAULT_LESSON
    return (
        _unproved_claim_template(pattern, moments, lesson) or _long_logs_template(pattern, lesson)
        or _misplaced_files_template(pattern, lesson)
    )  # fmt: skip


def _unproved_claim_template(
    pattern: Pattern, moments: Sequence[CallMoment], lesson: str
) -> Guard | None:
    has_proof = any(_is_proof_tool(tool) for each in moments for tool in each.situation.tools_run)
    can_prove = all(any(map(_is_proof_tool, each.tools)) for each in moments)
    if not moments or has_proof or not can_prove:
        return None
    if pattern.tool == "todo_complete":
        if not all(compile_cached_regex(CLAIM).search(moment.situation.todo) for moment in moments):
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
    if pattern.tool in WRITES and all(map(_marks_feature_tested, moments)):
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


def _is_proof_tool(tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in EVIDENCE_TOOLS)


def _marks_feature_tested(moment: CallMoment) -> bool:
    arguments = moment.situation.arguments
    named = PurePosixPath(str(arguments.get("path", ""))).name
    return named in FEATURE_LISTS and TESTED in json.dumps(arguments)


def _every_trace_has_path(pattern: Pattern) -> bool:
    return bool(pattern.paths) and all(row.path for row in pattern.traces)


def _guard_path_patterns(paths: list[str]) -> list[str]:
    if len(paths) <= MAX_NAMED_FILES and len({PurePosixPath(path).parts[:1] for path in paths}) > 1:
        return paths
    folders = {path.partition("/")[0] for path in paths if "/" in path}
    if len(folders) == 1 and all("/" in path for path in paths):
        return [f"{folders.pop()}/*"]
    endings = {PurePosixPath(path).suffix for path in paths}
    if len(endings) == 1 and (ending := endings.pop()):
        return [f"*{ending}"]
    return paths if len(paths) <= MAX_NAMED_FILES else []


OF_PEOPLE = ("person", "hook")
"""Types of traces by people, which can become guards. What guards or gates refuse is refused
already, and only a prompt keeps the agent from trying.
"""
SHOWN = 10


def propose_guard(
    pattern: Pattern, timestamp: int, moments: Sequence[CallMoment] = ()
) -> LearnedRevision:
    guard = guard_from_template(pattern, moments) if pattern.source in OF_PEOPLE else None
    by = guard.name if guard else _name_prompt_proposal(pattern)
    name = name_guard_proposal(pattern.agent, pattern.project, by)
    return LearnedRevision(
        name=name,
        stage="experiment" if guard else "draft",
        at=timestamp,
        since=timestamp,
        why="proposed from a pattern",
        agent=pattern.agent,
        project=pattern.project,
        **_proposal_evidence(pattern),
        guard=guard.model_copy(update={"name": name}) if guard else None,
        prompt="" if guard else _prompt_proposal(pattern),
    )


def propose_stricter(
    pattern: Pattern,
    timestamp: int,
    moments: Sequence[CallMoment],
    learned: Sequence[LearnedRevision],
    agent_guards: Sequence[Guard],
) -> LearnedRevision | None:
    """Return a stricter version of a guard that covers such calls but lets them pass.

    Args:
        learned: Newest revisions of the guards of the same agent and project.

    Returns:
        A further revision of a learned guard, or the first one that replaces the agent's own guard;
        None if there is no such guard.
    """
    if pattern.source not in OF_PEOPLE:
        return None
    common = {
        "stage": "experiment",
        "at": timestamp,
        "since": timestamp,
        **_proposal_evidence(pattern),
    }
    for revision in learned:
        if revision.guard and (
            version := _guard_with_lesson(stricter_version(revision.guard, moments), pattern)
        ):
            why = f"stricter than before, {_describe_stricter_proposal(revision.guard, version)}"
            return revision.model_copy(update={**common, "guard": version, "why": why})
    for guard in agent_guards:
        if guard.stage == "active" and (
            version := _guard_with_lesson(stricter_version(guard, moments), pattern)
        ):
            name = name_guard_proposal(pattern.agent, pattern.project, guard.name)
            return LearnedRevision.model_validate(
                {
                    **common,
                    "name": name,
                    "why": f"stricter than the agent's own {guard.name}, "
                    f"{_describe_stricter_proposal(guard, version)}",
                    "agent": pattern.agent,
                    "project": pattern.project,
                    "guard": version.model_copy(update={"name": name}),
                    "replaces": guard.name,
                }
            )
    return None


def name_guard_proposal(agent: str, project: str, by: str) -> str:
    return template_guard_name(f"{project}.{agent}.{by}".strip("."))


def _guard_with_lesson(guard: Guard | None, pattern: Pattern) -> Guard | None:
    """Add the correction for these calls: the guard's own message may name the old limit."""
    if guard is None or not pattern.lesson:
        return guard
    return guard.model_copy(update={"message": pattern.lesson})


def _describe_stricter_proposal(before: Guard, after: Guard) -> str:
    """Return the change as `reads_lines 1000 -> 500` or `decision ask -> deny`."""
    pairs = [("decision", before.decision, after.decision)]
    pairs += [
        (name, getattr(before.match, name), getattr(after.match, name))
        for name in ("reads_lines", "longer")
    ]
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in pairs if old != new)


def _proposal_evidence(pattern: Pattern) -> dict[str, Any]:
    numbers = [row.id for row in pattern.traces]
    named = first_few([f"T{number}" for number in numbers], SHOWN)
    return {"evidence": [pattern.line, f"traces {named}"], "traces": numbers[:SHOWN]}


def _name_prompt_proposal(pattern: Pattern) -> str:
    """Return a prompt's name. Refusals of two tools, or for two reasons, are two patterns; the
    oldest trace distinguishes them, since it stays the oldest.
    """
    reason = hashlib.sha256(
        pattern_reason(pattern.traces[0]).encode("utf-8", "replace")
    ).hexdigest()
    about = ".".join(filter(None, (pattern.guard or pattern.source, pattern.tool)))
    return f"{template_guard_name(about)}.prompt-{reason[:6]}"


def _prompt_proposal(pattern: Pattern) -> str:
    answer = f"It is answered: {pattern.lesson}" if pattern.lesson else "See the traces."
    return (
        f"Agent {pattern.agent} keeps running into {pattern.source} {pattern.guard}"
        f"{f' with {pattern.tool}' if pattern.tool else ''}. No guard helps, since it is refused "
        f"already or fits no template: say in the agent's prompt or todos what to do. {answer}"
    )


def stricter_version(guard: Guard, moments: Sequence[CallMoment]) -> Guard | None:
    """Return a guard that refuses all these calls by one changed limit or decision.

    It denies instead of remarking or asking, or its limit is as low as the smallest call requires.

    Returns:
        None for a guard on something else, or one that refuses them already.
    """
    situations = [moment.situation for moment in moments]
    if not situations or is_guard_strict_enough(guard, situations):
        return None
    for version in _stricter_versions(guard, situations):
        if is_guard_strict_enough(version, situations):
            return version
    return None


def is_guard_strict_enough(guard: Guard, situations: Sequence[GuardSituation]) -> bool:
    return guard.decision == "deny" and all(would_match_guard(guard, now) for now in situations)


def _stricter_versions(guard: Guard, situations: Sequence[GuardSituation]) -> list[Guard]:
    match, versions = guard.match, []
    if guard.decision == "ask":
        versions.append(guard.model_copy(update={"decision": "deny"}))
    if guard.decision == "feedback" and not match.content and match.longer is None:
        versions.append(guard.model_copy(update={"decision": "deny", "point": "before_tool"}))
    if guard.decision != "deny":
        return versions
    if match.reads_lines is not None:
        read = min(count_lines_for_matching(now) or 0 for now in situations)
        if 1 < read <= match.reads_lines:
            versions.append(_with_stricter_limit(guard, "reads_lines", _round_limit_down(read)))
    if match.longer is not None:
        written = min(guard_matched_length(match, now) for now in situations)
        if 1 < written <= match.longer:
            versions.append(_with_stricter_limit(guard, "longer", _round_limit_down(written)))
    return versions


def _with_stricter_limit(guard: Guard, name: str, limit: int) -> Guard:
    return guard.model_copy(update={"match": guard.match.model_copy(update={name: limit})})


def _round_limit_down(value: int) -> int:
    """Return the greatest number of one digit and zeros that is smaller: 599 and 501 give 500."""
    power: int = 10 ** (len(str(value - 1)) - 1)
    return (value - 1) // power * power

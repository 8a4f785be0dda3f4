"""What code can check of a statement of the brief: files, headings and counts that it names.

A check only speaks where the statement is plain: a file that it names as a result has to be there
and say something; a heading that it quotes, or a number of words, lines, rows or entries that it
demands, has to be in the one text file that it names. What can be read in two ways is right in
either, and what depends on a condition is left to the review: a refusal that is wrong cannot be
put right by the agent.
"""

from __future__ import annotations

import re

from activities.checkpoints import Files, FilesError, PathRefused
from activities.job.empty_content import empty_content_reason
from activities.text.statement_words import any_word
from protocol.scope_ledger import ScopeItem, Statement

MAX_READ = 2_000_000
"""Bytes of a file whose content is checked."""
ASIDE = ("notes/", "archive/")
"""Folders in which no result is looked for, unless the brief names them."""
_AWAY = any_word(r"delete|remove|rename|move|drop|lösche|löschen|entferne|entfernen")
_HEADING = re.compile(
    r"\b(?:heading|headed|titled|section|überschrift|abschnitt)s?\b[^\"“„`'\n]{0,20}"
    r"[\"“„`']([^\"”“`'\n]{2,80})[\"”“`']",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\b(?P<bound>at least|at most|exactly|no more than|no fewer than|mindestens|höchstens|genau)"
    r"\s+"
    r"(?P<number>\d{1,6})\s+"
    r"(?P<unit>words?|lines?|rows?|bullets?|bullet points?|entries|entry|sections?|headings?"
    r"|wörter|worte|zeilen|einträge|abschnitte)\b",
    re.IGNORECASE,
)
_UPPER = ("at most", "no more than", "höchstens")
_LOWER = ("at least", "no fewer than", "mindestens")
_NEGATION = any_word(r"not?|never|without|nicht|kein\w*|ohne|nie")
_CONDITION = any_word(
    r"if|when|whenever|unless|in case|where (?:needed|necessary)|optionally|falls|wenn|"
    r"sofern|bei Bedarf"
)
_OR = any_word(r"or|oder")
_RELATIVE = any_word(r"that|which|who|so that|die|das|der")
_JOINS = re.compile(
    r"(?:^|[,;:(|]|\b(?:and|or|to|into|as|write|create|und|oder|nach|als|schreibe))[\s\"'`]*$", re.I
)
"""Ends what stands between two files of which the second is a result like the first."""
_PROGRAM = re.compile(
    r"^\W*(?:the|a|an|each|every|die|der|das|ein|eine)?\s*(?:\w+\s)?(?:function|script|program(?:me)?"
    r"|tool|app|application|command|service|server|user|test|class|method|module|api)s?\b",
    re.IGNORECASE,
)
"""Begins what says how something behaves when it runs, and so not what the job leaves."""
_FOR_EACH = any_word(r"each|every|per|je|jede[nrms]?|pro")
_REFERENCE = re.compile(r"\b(?:the|this|der|die|dem|den|im|diese[nrms]?)\s+$", re.IGNORECASE)
_OF_WHOLE = re.compile(
    r"^[\s\"'`(,]*(?:(?:with|has|have|of|is|must|shall|should|may|will|be|contains?|mit|hat|muss|soll"
    r"|darf|haben|enthält)\b[\s,]*)*$",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"^\s*\|?[\s:|-]*-{2,}[\s:|-]*$")


def holds_statements(files: Files, item: ScopeItem) -> bool:
    """Return whether nothing that code can check of an item's statements is amiss."""
    return not statement_problems(files, item)


def statement_problems(files: Files, item: ScopeItem) -> list[str]:
    """Return what code finds amiss in what an item's statements name, a clause each."""
    return [why for statement in item.statements for why in _problems(files, statement)]


def _problems(files: Files, statement: Statement) -> list[str]:
    if not statement.paths or _AWAY.search(statement.text):
        return []
    problems = []
    for group in _demanded_paths(statement):
        found = {path: _read_named_file(files, path) for path in group}
        whys = [
            f"{path} does not exist" if data is None else f"{path} {why}"
            for path, data in found.items()
            if (why := "" if data is None else empty_content_reason(path, data)) is not None
        ]
        problems += whys if len(whys) == len(group) else []
    paths = [path for path in statement.paths if "*" not in path]
    data = _read_named_file(files, paths[0]) if len(paths) == 1 else None
    text = None if problems or data is None else _decoded_text(data)
    return problems if text is None else [f"{paths[0]} {why}" for why in _amiss(statement, text)]


def _demanded_paths(statement: Statement) -> list[list[str]]:
    """Return the files that have to be there whatever happens; of a group, one is enough."""
    text, place = statement.text, 0
    groups: list[list[str]] = []
    for path in statement.paths:
        start = text.find(path, place)
        if start < 0:
            # Beyond the end of a long statement.
            groups.append([path])
            continue
        between, place = text[place:start], start + len(path)
        condition = _CONDITION.search(text[:start])
        depends = (condition and not groups and condition.start() < 40) or (
            _CONDITION.search(between) if groups else _CONDITION.match(text[place:].lstrip(" ,"))
        )
        ours = path.startswith("output/")
        of_program = not ours and _PROGRAM.match(text)
        joined = not groups or (
            not _RELATIVE.search(between) and (ours or _JOINS.search(between.rstrip(" ./")))
        )
        if groups and _OR.fullmatch(between.strip(" ,(/")):
            groups[-1].append(path)
        elif not (depends or of_program or _NEGATION.search(between[-12:]) or "*" in path):
            groups += [[path]] if joined else []
    return groups


def _amiss(statement: Statement, text: str) -> list[str]:
    """Return which headings and counts that a statement demands a text lacks."""
    said, path = statement.text, statement.paths[0]
    lines = [line.strip(" #*_:=").casefold() for line in text.splitlines()]
    amiss = [
        f"has no heading {match[1]!r}"
        for match in _HEADING.finditer(said)
        if not any(match[1].strip().casefold() in line for line in lines)
        and not _NEGATION.search(said[: match.start()])
        and not _REFERENCE.search(said[: match.start()])
        and not _OR.search(said[match.end() :])
    ]
    for match in _COUNT.finditer(said):
        if _FOR_EACH.search(said):
            continue
        bound, number = match["bound"].casefold(), int(match["number"])
        counts = _counts(match["unit"].casefold(), text)
        before = said[: match.start()]
        # "An abstract of at most 50 words in report.md" says nothing of the whole file.
        whole = path in before and _OF_WHOLE.match(before.partition(path)[2].lstrip("/"))
        too_few = bound not in _UPPER and all(count < number for count in counts)
        too_many = bound not in _LOWER and all(count > number for count in counts)
        if counts and (too_few or (too_many and whole)):
            amiss.append(f"has {counts[0]:,} {match['unit']}, {bound} {number:,} are asked for")
    return amiss


def _counts(unit: str, text: str) -> list[int]:
    """Return the counts of a unit in a text, as people count it; none if nothing can be said."""
    lines = text.splitlines()
    filled = [line for line in lines if line.strip()]
    headings = [line for line in filled if re.match(r"#{1,6}\s+\S", line)]
    if unit.startswith(("word", "wörter", "worte")):
        body = "\n".join(line for line in filled if line not in headings)
        words = r"\w[\w'’-]*"  # noqa: RUF001
        return [len(re.findall(words, text)), len(re.findall(words, body)), len(body.split())]
    if unit.startswith(("bullet", "entr", "eintr")):
        marks = [re.match(r"(\s*)(?:[-*+•]|\d+[.)])\s+\S", line) for line in filled]
        top = [mark for mark in marks if mark and not mark[1]]
        return [count for count in (sum(map(bool, marks)), len(top)) if count or unit[0] == "b"]
    if unit.startswith(("section", "heading", "abschnitt")):
        levels = [line.count("#", 0, 7) for line in headings]
        return [len(headings), len(headings) - 1, *(levels.count(n) for n in sorted(set(levels)))]
    if unit.startswith("row"):
        table = [line for line in filled if "|" in line]
        tables = sum(bool(_SEPARATOR.match(line)) for line in table)
        return [len(filled), len(filled) - 1, len(table) - tables, len(table) - 2 * tables]
    return [len(filled), len(lines), len(filled) - len(headings)]


def _read_named_file(files: Files, path: str) -> bytes | None:
    """Return the content of a file by the path that a brief gives it: from the top of the
    workspace, or below a folder such as that of the repository; None without such a file.
    """
    name = path.removeprefix("./").removeprefix("/workspace/")
    try:
        return files.read(name)
    except (FilesError, PathRefused):
        pass
    for entry in files.walk():
        ends = entry.kind == "file" and entry.path.endswith(f"/{name}")
        if ends and not entry.path.startswith(ASIDE):
            return files.read_entry(entry) if entry.size <= MAX_READ else b"large"
    if "." in name.rstrip("/").rpartition("/")[2] and not name.endswith("/"):
        return None
    folder = files.entry(name.rstrip("/")) if name else None
    return b"folder" if folder is not None and folder.kind == "folder" else None


def _decoded_text(data: bytes) -> str | None:
    """Return a file's text; None for one that is no text, or too large."""
    if len(data) > MAX_READ or b"\0" in data:
        return None
    return data.decode(errors="replace")

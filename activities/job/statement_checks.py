"""What code can check of a statement of the brief: files, headings and counts that it names.

A check only speaks where the statement is plain: a file that it names as a result has to be there
and say something; a heading that it quotes, or a number of words, lines, rows or entries that it
demands, has to be in the one text file that it names. What can be read in two ways is right in
either, and what depends on a condition is left to the review: a refusal that is wrong cannot be
put right by the agent.
"""

import re
from collections.abc import Iterable

from activities.checkpoints import Files, FilesError, PathRefused
from activities.job.empty_content import empty_content_reason
from activities.text.statement_words import any_word
from protocol.scope_ledger import ScopeItem, Statement

MAX_READ = 2_000_000
ASIDE = ("notes/", "archive/")
"""Folders in which no result is looked for, unless the brief names them."""
_TAKES = re.compile(
    r"\b(?:delete|remove|rename|move|drop|lösche|entferne)"
    r"(?:\s+(?!(?:to|into|in|as|on|for|from|nach|zu|als|aus)\b)[\w-]+){0,6}[\s\"'`(]*$",
    re.IGNORECASE,
)
"""Ends what stands before a file that is to be taken away."""
_IS_TAKEN = re.compile(
    r"^[\s\"'`)]*(?:(?:must|shall|should|has|have|is|are|to|be|muss|soll|wird)\s+)*"
    r"(?:deleted|removed|renamed|moved|dropped"
    r"|(?:(?!und\b|wie\b)\w+\s+){0,3}(?:gelöscht|entfernt|löschen|entfernen))\b",
    re.IGNORECASE,
)
_TAKES_IT = re.compile(
    r"\b(?:delete|remove|rename|move|drop|lösche|entferne|verschiebe|benenne)\s+"
    r"(?:it|them|this|that|both|(?:the|this|that|die|diese)\s+(?:file|datei)|sie|es|ihn)\b",
    re.IGNORECASE,
)
"""Stands after a file that is taken away once it was made."""
_OTHER_PATH = re.compile(r"[\w-]+/[\w./-]+|\b[\w-]+\.[a-z]\w{0,4}\b", re.IGNORECASE)
_AND = re.compile(r"[\s\"'`]*(?:,|and|und|,\s*and)[\s\"'`]*", re.IGNORECASE)
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


def find_taken_files(text: str, paths: Iterable[str]) -> set[str]:
    """Return which of these files a statement has deleted, moved or renamed.

    They may be made before, as in "Write a.md, then move it to b.md", so they need not remain.
    """
    spans = sorted(
        match.span()
        for path in set(paths)
        for match in re.finditer(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", text)
    )
    taken, place, goes_on = set(), 0, False
    for start, end in spans:
        between, after = text[place:start], text[end:]
        other = _OTHER_PATH.search(after)
        goes_on = bool(
            (goes_on and _AND.fullmatch(between))
            or _IS_TAKEN.match(after)
            or _is_told(_TAKES.search(between))
        )
        if goes_on or _is_told(_TAKES_IT.search(after, 0, other.start() if other else len(after))):
            taken.add(text[start:end])
        place = end
    return taken


def _is_told(verb: re.Match[str] | None) -> bool:
    return verb is not None and not _NEGATION.search(verb.string[: verb.start()][-12:])


def statement_problems(files: Files, item: ScopeItem) -> list[str]:
    return [why for statement in item.statements for why in _problems(files, statement)]


def _problems(files: Files, statement: Statement) -> list[str]:
    if not statement.paths:
        return []
    problems = []
    for group in _demanded_paths(statement):
        contents = {path: _read_named_file(files, path) for path in group}
        whys = [
            f"{path} does not exist" if data is None else f"{path} {why}"
            for path, data in contents.items()
            if (why := "" if data is None else empty_content_reason(path, data)) is not None
        ]
        problems += whys if len(whys) == len(group) else []
    paths = [path for path in statement.paths if "*" not in path]
    data = _read_named_file(files, paths[0]) if len(paths) == 1 else None
    if problems or data is None or len(data) > MAX_READ or b"\0" in data:
        return problems
    return [f"{paths[0]} {why}" for why in _amiss(statement, data.decode(errors="replace"))]


def _demanded_paths(statement: Statement) -> list[list[str]]:
    """Return the files that have to be there whatever happens; of a group, one is enough."""
    text, place = statement.text, 0
    taken = find_taken_files(text, statement.paths)
    groups: list[list[str]] = []
    for path in statement.paths:
        start = text.find(path, place)
        if start < 0:
            # Beyond the end of a long statement.
            groups.append([path])
            continue
        between, place = text[place:start], start + len(path)
        if path in taken:
            continue
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
        of_whole_file = path in before and _OF_WHOLE.match(before.partition(path)[2].lstrip("/"))
        too_few = bound not in _UPPER and all(count < number for count in counts)
        too_many = bound not in _LOWER and all(count > number for count in counts)
        if counts and (too_few or (too_many and of_whole_file)):
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
    """Return a file's content by a brief's path, from the top or below a folder, if any."""
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

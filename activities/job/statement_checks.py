"""What code can check of a statement of the brief: files, headings and counts that it names.

A check only speaks where the statement is plain: a file that it names as a result has to be there
and say something; a heading that it quotes, or a number of words, lines, rows or entries that it
demands, has to be in the one text file that it names. What can be read in two ways is right in
either, and what depends on a condition is left to the review: a refusal that is wrong cannot be
put right by the agent.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

from activities.checkpoints import FileEntry, Files, FilesError, PathRefused
from activities.job.content_counts import count_range, repeats
from activities.job.demanded_counts import LEFT_OPEN, demanded_count, demanded_files, says_range
from activities.job.empty_content import empty_content_reason
from activities.job.file_formats import wrong_format_reason
from activities.text.statement_words import any_word
from protocol.scope_ledger import ScopeItem, Statement

MAX_READ = 2_000_000
MAX_GIVEN = 400
"""Characters at the beginning of a text by which it is known in the brief that gives it."""
MAX_RANGE = 1_000
"""Most files that "a_1.md to a_9.md" may stand for."""
ASIDE = ("notes/", "archive/", "tools/", "skills/")
"""Folders in which no result is looked for, unless the brief names them."""
_TAKES = re.compile(
    r"\b(?:delete|remove|re(?:name|number|label)|move|drop|lösche|entferne|verschiebe|benenne)"
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
    r"[\s\"'`,]*(?:(?:that|which|and|die|das|must|should|shall|muss|soll)\s+){0,2}"
    r"(?:with|has|have|contains?|containing|includes?|including|mit|hat|haben|enthält)\s+"
    r"(?:(?!option\w+\b)[\w-]+\s+){0,3}?(?:headings?|sections?|überschrift(?:en)?|abschnitt(?:en?)?)"
    r"[\s:]*[\"“„`'](?P<title>[^\"”“`'\n]{2,80})[\"”“`']",
    re.IGNORECASE,
)
_NEXT_HEADING = re.compile(
    r"\s*(?:,\s*(?:and|und)|,|and|und|&)\s*[\"“„`']([^\"”“`'\n]{2,80})[\"”“`']", re.IGNORECASE
)
_MADE = re.compile(
    r"(?:please\s+)?(?:write|create|draft|prepare|schreibe?n?|erstelle?n?|verfasse?n?)\s+"
    r"(?:(?!compar|vergleich)[\w-]+\s+){1,4}?(?=(?:with|containing|mit)\b)",
    re.IGNORECASE,
)
_ENDS_HEADINGS = re.compile(
    r"\W*(?:$|[.;:,(\u2013-]|(?:and|und|each|jeweils|(?:to|in|into|as|nach|als)\s+output)\b)",
    re.IGNORECASE,
)
"""Follows headings that a file has; others are those of another file, or are left out."""
_LETTERS = re.compile(r"[^\W_]+")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_PLURALS = {"entry": "entries"}
_NEGATION = any_word(r"not?|never|without|nicht|kein\w*|ohne|nie")
_CONDITION = any_word(
    r"if|when|whenever|unless|in case|where (?:needed|necessary)|optional(?:ly)?|ideally"
    r"|nice to have|either|falls|wenn|ggf|gegebenenfalls|entweder|idealerweise|notfalls|"
    r"sofern|bei Bedarf"
)
_DEPENDS = re.compile(
    rf"[\s,(\"'`]*(?:but\s+)?(?:(?:only|nur)\s+)?(?:{_CONDITION.pattern}|except|außer)",
    re.IGNORECASE,
)
"""Follows files that may not have to be there."""
_NOT_THERE = re.compile(
    r"[\s\"'`)]*(?:(?:must|should|shall|may|is|are|do|does|has|have|darf|soll|dürfen|sollen)\s+)+"
    r"(?:not|never|nicht)\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"(?:\bsuch as|\be\.g\.|\bfor example|\bz\.\s?B\.|\bzum Beispiel)[\s,:\"'`(]*$", re.IGNORECASE
)
_OR = any_word(r"or|oder")
_RELATIVE = any_word(r"that|which|who|so that|die|das|der")
_JOINS = re.compile(
    r"(?:^|[,;:(|]|\b(?:and|or|to|into|as|write|create|und|oder|nach|als|schreibe))[\s\"'`]*$", re.I
)
"""Ends what stands between two files of which the second is a result like the first."""
_PROGRAM = re.compile(
    r"^\W*(?:it|they|es|sie|(?:(?:the|a|an|each|every|die|der|das|ein|eine)\s+)?(?:\w+\s)?"
    r"(?:function|script|program(?:me)?|tool|app|application|command|service|server|user|test|class"
    r"|method|module|api)s?)\b",
    re.IGNORECASE,
)
"""Begins what says how something behaves when it runs, and so not what the job leaves."""
_RANGE = re.compile(
    r"[\s\"'`,]*(?P<word>to|bis|-|through|thru|until|\u2013|\u2014|\.\.+|\u2026)[\s\"'`,]*",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>\d{1,6})(?P<after>\D*)", re.DOTALL)
_OF_BRIEF = any_word(r"this|these|cop(?:y|ies)|quote|verbatim|wörtlich|diese[nrms]?|kopier\w*")
_BROKEN = re.compile(
    r"invalid|broken|corrupt|malformed|damaged|truncated|unreadable|fake|dummy|mock|stub|fixture|bad"
    r"|placeholder|plain text|wrong|templat|comment|json5|jsonc|tsconfig|ungültig|kaputt|defekt"
    r"|beschädigt",
    re.IGNORECASE,
)
"""Asks for a file that is not what its ending says, or may."""
_REPEATS = re.compile(
    r"repeat|repetit|same|identi|cop(?:y|ies)|times|random|only the|template|wiederhol|gleich|selbe"
    r"|kopie|vorlage",
    re.I,
)
_GIVES = r"(?:[\"'`\u201c\u201e\u00bb]|\b(?:contain|enth|inhalt|content|text|word|wort)\w*)"
_EACH = any_word(r"each|every|jede\w*")
_NEXT_SENTENCE = 160
"""Characters after a demand that may take some of it back."""


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
    taken, place, goes_on, path = set[str](), 0, False, ""
    for start, end in spans:
        between, after = text[place:start], text[end:]
        other = _OTHER_PATH.search(after)
        goes_on = bool(
            (goes_on and (_AND.fullmatch(between) or _range_of(path, between, text[start:end])))
            or _IS_TAKEN.match(after)
            or _is_told(_TAKES.search(between))
        )
        if goes_on or _is_told(_TAKES_IT.search(after, 0, other.start() if other else len(after))):
            taken.add(text[start:end])
        path, place = text[start:end], end
    return taken


def _is_told(verb: re.Match[str] | None) -> bool:
    return verb is not None and not _NEGATION.search(verb.string[: verb.start()][-12:])


def statement_problems(files: Files, item: ScopeItem) -> list[str]:
    return [why for statement in item.statements for why in _problems(files, statement)]


def _problems(files: Files, statement: Statement) -> list[str]:
    if not statement.paths:
        return []
    problems, brief = [], f"{statement.text}\n{_instructions(files)}"
    groups = demanded_paths(statement.text, statement.paths)
    for group in groups:
        whys = [
            f"{path} {why}"
            for path in group
            if (why := _file_problem(files, path, statement, brief))
        ]
        problems += whys if len(whys) == len(group) else []
    if not problems:
        paths = [group[0] for group in groups]
        problems = _range_problems(files, statement.text, paths, brief)
    paths = [path for path in statement.paths if "*" not in path]
    entry = find_named(files, paths[0]) if len(paths) == 1 else None
    if problems or entry is None:
        return problems
    if entry.kind == "folder":
        return _folder_problems(files, entry, paths[0], statement.text, brief)
    data = files.read_entry(entry) if entry.size <= MAX_READ else b"\0"
    if b"\0" in data:
        return []
    text = data.decode(errors="replace")
    whys = [*_amiss(statement, text), *_count_problems(statement, text, brief)]
    return [f"{paths[0]} {why}" for why in whys]


def _instructions(files: Files) -> str:
    with suppress(FilesError, PathRefused):
        return files.read("instructions.md").decode(errors="replace")
    return ""


def _file_problem(files: Files, path: str, statement: Statement, brief: str) -> str | None:
    entry = find_named(files, path)
    if entry is None:
        return "does not exist"
    if entry.kind == "folder":
        return None
    content = files.read_entry(entry)
    if why := empty_content_reason(path, content, brief):
        return why
    said = f"{statement.text} {_said_after(brief, path)}"
    return None if _BROKEN.search(said) else wrong_format_reason(path, content)


def _range_problems(files: Files, said: str, paths: list[str], brief: str) -> list[str]:
    """Return what is missing of "15 files a_01.md to a_15.md" between the two."""
    problems = []
    for first, last in pairwise(paths):
        between = said.partition(first)[2].partition(last)[0]
        numbers, entry = _range_of(first, between, last), find_named(files, first)
        plain = between.strip(" \t\"'`,").lower() in ("to", "bis", "-")
        if not entry or len(numbers) < 3 or (plain and not says_range(said, len(numbers))):
            continue
        contents_of = {
            _numbered(each.path): files.read_entry(each)
            for each in files.children(entry.path.rpartition("/")[0])
            if each.kind != "folder"
        }
        before, _, after = _numbered(first)
        found = {
            number: content
            for number in numbers
            if (content := contents_of.get((before, number, after)))
            and not empty_content_reason(first, content, brief)
        }
        contents = {" ".join(text.decode(errors="replace").split()) for text in found.values()}
        if len(found) > 2 and len(contents) == 1 and not _may_be_alike(contents, brief):
            problems.append(f"the files {first} to {last} are all the same")
        if lacking := [number for number in numbers if number not in found]:
            problems.append(
                f"{len(lacking)} of the {len(numbers)} files {first} to {last} are missing or "
                f"empty, such as number {lacking[0]}"
            )
    return problems


def _range_of(first: str, between: str, last: str) -> range:
    """Return the numbers of the files from "a_1.md" to "a_9.md"; none if that is no range."""
    (before, low, after), (same, high, alike) = _numbered(first), _numbered(last)
    is_range = (before, after) == (same, alike) and _RANGE.fullmatch(between)
    return range(low, high + 1) if is_range and 0 <= low > high - MAX_RANGE else range(0)


def _numbered(path: str) -> tuple[str, int, str]:
    """Return a file's name around its number, which is -1 if it has none."""
    name = path.rpartition("/")[2]
    found = _NUMBERED.fullmatch(name)
    return (found["before"], int(found["number"]), found["after"]) if found else (name, -1, "")


def _folder_problems(
    files: Files, folder: FileEntry, path: str, said: str, brief: str
) -> list[str]:
    left_open = LEFT_OPEN.search(_said_after(brief, path))
    number, count, contents = 0 if left_open else demanded_files(said), 0, set[str]()
    for entry in files.walk(folder.path) if number else ():
        content = files.read_entry(entry) if entry.size <= MAX_READ else entry.id.encode()
        if not empty_content_reason(entry.path, content, brief):
            contents.add(" ".join(content.decode(errors="replace").split()))
            count += 1
    if len(contents) >= number or (count >= number and _may_be_alike(contents, brief)):
        return []
    found = f"{len(contents):,} {'file' if len(contents) == 1 else 'different files'} of {number:,}"
    return [f"{path} has {found} that are asked for"]


def _may_be_alike(contents: set[str], brief: str) -> bool:
    """Return whether a brief wants files that repeat, or gives their text: 'each with "a"'."""
    text = next(iter(contents)) if len(contents) == 1 else ""
    given = rf"{_GIVES}\W*{re.escape(text[:MAX_GIVEN])}(?!\w)"
    quoted = text and re.search(given, brief, re.IGNORECASE)
    return bool(quoted or _REPEATS.search(brief))


def demanded_paths(text: str, paths: Sequence[str]) -> list[list[str]]:
    """Return the files that have to be there whatever happens; of a group, one is enough."""
    taken, place, first, run = find_taken_files(text, paths), 0, 0, 0
    groups: list[list[str]] = []
    for path in paths:
        start = text.find(path, place)
        if start < 0:
            # Beyond the end of a long statement.
            groups.append([path])
            continue
        between, place = text[place:start], start + len(path)
        if path in taken:
            continue
        # A condition after "a.md and b.md" is one for both, and one after ", and b.md" is not.
        run = run if _AND.fullmatch(between) and "," not in between else len(groups)
        if _DEPENDS.match(text, place) or _NOT_THERE.match(text, place):
            del groups[run:]
            continue
        condition = _CONDITION.search(between if groups else text[:start])
        depends = condition and (groups or condition.start() < 40)
        first = first if groups else place
        ours = path.startswith("output/")
        of_program = not ours and _PROGRAM.match(text)
        clause = between if ours else text[first:start]
        joined = not groups or (
            not _RELATIVE.search(clause) and (ours or _JOINS.search(between.rstrip(" ./")))
        )
        if groups and _OR.fullmatch(between.strip(" ,(/")):
            groups[-1].append(path)
        elif not (
            depends
            or of_program
            or _NEGATION.search(between[-12:])
            or _EXAMPLE.search(between)
            or "*" in path
        ):
            groups += [[path]] if joined else []
    return groups


def _amiss(statement: Statement, text: str) -> list[str]:
    """Return which headings that a statement demands a text lacks."""
    said, path = statement.text, statement.paths[0]
    words = _folded(_TAG.sub(" ", html.unescape(text)))
    amiss = [
        f"has no heading {title!r}"
        for title in _quoted_headings(said, path)
        if f" {_folded(title)} " not in f" {words} "
    ]
    if words == _folded(said) and not _OF_BRIEF.search(said):
        amiss.append("holds nothing but the words of the instructions")
    return amiss


def _count_problems(statement: Statement, text: str, brief: str) -> list[str]:
    path = statement.paths[0]
    count = demanded_count(statement.text, path)
    counted = count_range(count.unit, path, text) if count else None
    if count is None or counted is None or LEFT_OPEN.search(_said_after(brief, count.words)):
        return []
    fewest, most = counted
    if most < count.least or (count.most is not None and fewest > count.most):
        number = most if most < count.least else fewest
        unit = count.unit if number == 1 else _PLURALS.get(count.unit, f"{count.unit}s")
        return [f"has {number:,} {unit}, {count.text} are asked for"]
    may_repeat = _REPEATS.search(brief) or _EACH.search(brief)
    if count.least > 2 and not may_repeat and repeats(count.unit, text):
        return [f"has the same {count.unit} again and again, {count.text} are asked for"]
    return []


def _said_after(brief: str, words: str) -> str:
    """Return what a brief goes on with wherever it has these words."""
    return " ".join(part[:_NEXT_SENTENCE] for part in " ".join(brief.split()).split(words)[1:])


def _quoted_headings(said: str, path: str) -> list[str]:
    """Return the headings that the file has to have: all of `sections "Costs" and "Risks"`."""
    places = [said.find(path) + len(path)] if path in said else []
    if made := _MADE.match(said):
        places.append(made.end())
    for match in filter(None, (_HEADING.match(said, place) for place in places)):
        titles, end = [match["title"].strip()], match.end()
        while following := _NEXT_HEADING.match(said, end):
            titles.append(following[1].strip())
            end = following.end()
        depends = any(each.search(said) for each in (_NEGATION, _CONDITION, _OR))
        return titles if _ENDS_HEADINGS.match(said, end) and not depends else []
    return []


def _folded(text: str) -> str:
    return " ".join(_LETTERS.findall(unicodedata.normalize("NFKC", text).casefold()))


def find_named(files: Files, path: str) -> FileEntry | None:
    """Return a file by a brief's path, from the top or below a folder; or the folder, if any."""
    name = path.removeprefix("./").removeprefix("/workspace/")
    with suppress(FilesError, PathRefused):
        entry = files.entry(files.resolve_links(name))
        if entry is not None and entry.kind == "file":
            return entry
    for entry in files.walk():
        ends = entry.kind == "file" and entry.path.endswith(f"/{name}")
        if ends and not entry.path.startswith(ASIDE):
            return entry
    if "." in name.rstrip("/").rpartition("/")[2] and not name.endswith("/"):
        return None
    with suppress(FilesError, PathRefused):
        folder = files.entry(name.rstrip("/")) if name else None
        return folder if folder is not None and folder.kind == "folder" else None
    return None

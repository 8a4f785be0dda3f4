"""The statements of a job's brief: what its sentences and lists ask for, found by code.

A brief is Markdown, plain text, or the text of a document. What a reader does not see as said
(code, comments, quotes, struck text, front matter) says nothing here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from activities.job.named_results import named_results
from activities.text.indicators import shipped_indicators
from activities.text.instructing import (
    describes_result,
    has_obligation,
    heading_asks,
    heading_words,
    sentence_force,
    statement_words,
)
from activities.text.safe_text import replace_surrogates
from activities.text.sentence_ends import split_at_sentence_ends
from protocol.short_text import one_line, shorten_to_start

MAX_TEXT = 400
"""Longest text of a statement, in characters."""
MAX_LEAD = 160
"""Longest lead-in before a list entry, in characters."""
MAX_HEADING = 120
MAX_FENCES = 20
"""Most shorter fences within a block of code, after which its end is no longer sought."""
MAX_GROUPS = 40
MAX_IN_GROUP = 8
"""Most statements of a heading that stay one group while there is room for more groups."""
Mode = Literal["binds", "open", "background", "example"]
"""What a list or section makes of its entries: each is asked for, its own words decide, only words
of obligation count, or nothing counts."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a brief asks for, with its place and the files it names as results."""

    text: str
    path: str
    line: int
    """Line of the file, from 1."""
    heading: str = ""
    """The nearest heading above it; empty without one."""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementGroup:
    """Neighbouring statements that make one item."""

    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ScopeList:
    """The entries below the headings of a scope; `found` also if nothing could be read there."""

    entries: tuple[str, ...]
    found: bool


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading, paragraph, list entry or table row; `text` has the line ends of the file."""

    kind: Literal["heading", "paragraph", "entry", "row"]
    text: str
    line: int
    level: int = 0
    lists: tuple[int, ...] = ()
    """Numbers of the lists that it is in, the outermost first."""
    cells: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Lead:
    """What stands before a list: words that its entries continue, and what it makes of them."""

    text: str = ""
    mode: Mode = "open"


@dataclass(slots=True)
class _Section:
    level: int
    title: str
    line: int
    mode: Mode
    asks: bool
    filled: bool = False


def brief_statements(text: str, path: str) -> list[Statement]:
    """Return the statements of a brief in order.

    Args:
        path: The brief's own path; it is never among the files named as results.
    """
    return _Reader(path).read(list(_read_blocks(text)))


def scope_list(text: str) -> ScopeList:
    """Return the list below each heading of a scope, in whatever form people write one.

    Entries with entries of their own stand before each of these.
    """
    blocks = list(_read_blocks(text))
    entries: list[str] = []
    found = False
    for place, block in enumerate(blocks):
        title, _, said = block.text.strip().partition(":")
        named = heading_words(title) in statement_words().scope and (
            block.kind == "heading" or ":" in block.text or _begins_list(blocks, place)
        )
        if not named or block.kind == "row":
            continue
        found = True
        if block.kind != "heading" and said.strip(" *_\n"):
            entries += _said_in_line(said)
        entries += _entries_below(blocks, place)
    return ScopeList(tuple(entries), found)


def group_statements(
    statements: Sequence[Statement], most: int = MAX_GROUPS
) -> list[StatementGroup]:
    """Return the statements in at most `most` groups of neighbours, by headings if there are more.

    Headings share a group if they are too many; one with many statements is divided if there is
    room. No statement is lost or moved.
    """
    if len(statements) <= most:
        return [StatementGroup(each.text, (each,)) for each in statements]
    runs: list[list[Statement]] = []
    for each in statements:
        if runs and runs[-1][-1].heading == each.heading and runs[-1][-1].path == each.path:
            runs[-1].append(each)
        else:
            runs.append([each])
    if len(runs) > most:
        runs = _join_runs(runs, most)
    return [_group_of(run) for run in _divide_runs(runs, most)]


def _join_runs(runs: list[list[Statement]], most: int) -> list[list[Statement]]:
    """Join neighbours to at most `most` runs of about the same size."""
    total = sum(map(len, runs))
    joined: dict[int, list[Statement]] = {}
    before = 0
    for run in runs:
        joined.setdefault(before * most // total, []).extend(run)
        before += len(run)
    return list(joined.values())


def _divide_runs(runs: list[list[Statement]], most: int) -> list[list[Statement]]:
    """Divide runs of too many statements as long as there is room; those without heading most."""
    fewest = -(-sum(map(len, runs)) // most)
    for limit in range(fewest, max(map(len, runs)) + 1):
        divided = [
            part
            for run in runs
            for part in _even_parts(run, max(limit, MAX_IN_GROUP) if run[0].heading else limit)
        ]
        if len(divided) <= most:
            return divided
    return runs


def _even_parts(run: list[Statement], limit: int) -> Iterator[list[Statement]]:
    count = -(-len(run) // limit)
    for number in range(count):
        yield run[len(run) * number // count : len(run) * (number + 1) // count]


def _group_of(run: list[Statement]) -> StatementGroup:
    titles = list(dict.fromkeys(each.heading for each in run if each.heading))
    title = one_line("; ".join(titles), MAX_TEXT) if titles else run[0].text
    return StatementGroup(title, tuple(run))


class _Reader:
    """Goes through the blocks of one brief and keeps the sections and lists it is in."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._abbreviations = shipped_indicators().abbreviations
        self._found: list[Statement] = []
        self._sections: list[_Section] = []
        self._leads: dict[int, _Lead] = {}
        self._bases: dict[int, _Lead] = {}

    def read(self, blocks: list[_Block]) -> list[Statement]:
        before: _Block | None = None
        for place, block in enumerate(blocks):
            following = blocks[place + 1] if place + 1 < len(blocks) else None
            if block.kind == "heading":
                self._begin_section(block)
            else:
                for number in block.lists:
                    if number not in self._leads:
                        outer = self._outer_lead(block.lists, number, before)
                        led = before is not None and _is_led_by(block, before)
                        self._leads[number] = self._lead_before(before if led else None, outer)
                        self._bases[number] = self._leads[number]
                self._read_block(
                    block,
                    leads=_is_led_by(following, block),
                    siblings=following is not None and following.lists == block.lists != (),
                )
            before = block
        self._close_sections(0)
        return sorted(self._found, key=lambda each: each.line)

    def _begin_section(self, block: _Block) -> None:
        self._close_sections(block.level)
        words = heading_words(block.text)
        mode = _heading_mode(words)
        asks = mode == "open" and heading_asks(block.text)
        title = one_line(block.text.strip(" *_:"), MAX_HEADING)
        self._sections.append(_Section(block.level, title, block.line, mode, asks))

    def _close_sections(self, level: int) -> None:
        """End the sections of that level and below; one that asks stands for itself if empty."""
        while self._sections and self._sections[-1].level >= level:
            section = self._sections.pop()
            if section.asks and not section.filled:
                self._add(section.title, section.line)
            elif section.filled and self._sections:
                self._sections[-1].filled = True

    @property
    def _mode(self) -> Mode:
        return next((each.mode for each in reversed(self._sections) if each.mode != "open"), "open")

    def _outer_lead(self, lists: tuple[int, ...], number: int, before: _Block | None) -> _Lead:
        place = lists.index(number)
        if place:
            return self._leads[lists[place - 1]]
        if before is not None and before.lists and before.text.rstrip().endswith(":"):
            return self._leads.get(before.lists[-1], _Lead(mode=self._mode))
        return _Lead(mode=self._mode)

    def _lead_before(self, block: _Block | None, outer: _Lead) -> _Lead:
        """Return the lead of a list that begins after the block."""
        if block is None or block.kind in ("heading", "row"):
            if block is not None and block.text.rstrip().endswith(":") and self._sections[-1].asks:
                return _Lead(block.text.strip(), "binds")
            return outer
        sentence = self._sentences(block.text)[-1][0] if block.text.strip() else ""
        if not _introduces(sentence):
            return outer
        return _lead_of(sentence, outer)

    def _read_block(self, block: _Block, *, leads: bool, siblings: bool) -> None:
        lead = self._leads[block.lists[-1]] if block.lists else _Lead(mode=self._mode)
        if lead.mode == "example":
            return
        if block.kind == "row":
            self._read_row(block, lead)
            return
        own = (
            lead
            if block.kind == "entry"
            else _Lead(mode="open" if lead.mode == "binds" else lead.mode)
        )
        parts = list(self._parts(block.text, own))
        for number, (text, offset, part_lead) in enumerate(parts):
            line = block.line + block.text.count("\n", 0, offset)
            last = number == len(parts) - 1
            if last and leads and _introduces(text) and _lead_of(text, lead).mode == "binds":
                continue
            if last and siblings and text.endswith(":") and _lead_of(text, lead).mode == "binds":
                self._leads[block.lists[-1]] = _lead_of(text, self._bases[block.lists[-1]])
                continue
            answered = not last and _ANSWERS.match(parts[number + 1][0]) and text.endswith("?")
            if _is_wanted(text, part_lead) and not answered:
                self._add(f"{_short_lead(part_lead)}{text}", line)

    def _parts(self, text: str, lead: _Lead) -> Iterator[tuple[str, int, _Lead]]:
        """Yield sentences and entries of lists within the text: each with offset and lead.

        The lead of the block applies to its first sentence; the others go by their own words.
        """
        rest: Mode = "open" if lead.mode == "binds" else lead.mode
        for number, (sentence, offset) in enumerate(self._sentences(text)):
            own = lead if number == 0 else _Lead(mode=rest)
            yield from _split_inline_list(sentence, offset, own)

    def _sentences(self, text: str) -> list[tuple[str, int]]:
        """Return the sentences with their offsets; a list within the text stays in one."""
        found: list[tuple[str, int]] = []
        start = 0
        marks = _inline_marks(text)
        ends = [
            *((label.start(), label.start()) for label in _LABEL_LINE.finditer(text)),
            *split_at_sentence_ends(text, 0, self._abbreviations),
        ]
        for stop, following in sorted(ends):
            if marks and marks[0].start() <= stop <= marks[-1].end():
                continue
            if text[start:stop].strip() and stop >= start:
                blank = len(text[start:stop]) - len(text[start:stop].lstrip())
                found.append((text[start:stop].strip(), start + blank))
            start = following
        return found or [(text.strip(), 0)]

    def _read_row(self, block: _Block, lead: _Lead) -> None:
        cells = [cell for cell in block.cells if cell.strip()]
        words = [heading_words(column) for column in block.columns]
        demanded = any(_heading_mode(column) == "binds" for column in words)
        if lead.mode == "background":
            wanted = any(map(_is_obligation, cells))
        else:
            wanted = demanded or lead.mode == "binds" or any(map(_is_obligation, cells))
        if wanted and cells:
            self._add(f"{_short_lead(lead)}{' | '.join(cells)}", block.line)

    def _add(self, text: str, line: int) -> None:
        full = _ENTRY_END.sub("", replace_surrogates(" ".join(text.split())))
        paths = tuple(path for path in named_results(full) if path != self._path)
        heading = self._sections[-1].title if self._sections else ""
        self._found.append(Statement(one_line(full, MAX_TEXT), self._path, line, heading, paths))
        if self._sections:
            self._sections[-1].filled = True


def _is_wanted(text: str, lead: _Lead) -> bool:
    """Return whether a sentence or entry is a statement, after what leads to it."""
    if lead.mode == "example" or not re.search(r"[^\W_]", text):
        return False
    force = sentence_force(text)
    if lead.mode == "background":
        return force == "asks" and _is_obligation(text)
    if force == "asks":
        return True
    if lead.mode == "binds":
        return force == "none"
    return force == "none" and bool(named_results(text, described=True))


def _is_obligation(text: str) -> bool:
    """Return whether it binds by a word of obligation or forbids."""
    if has_obligation(text):
        return True
    return _FORBIDS.match(text) is not None and sentence_force(text) == "asks"


def _lead_of(sentence: str, outer: _Lead) -> _Lead:
    """Return what a lead-in makes of the list after it."""
    said = sentence.strip().rstrip(": ")
    mode = _heading_mode(heading_words(said))
    if mode != "open":
        return _Lead(outer.text, mode)
    force = sentence_force(said)
    if force == "example" or re.search(
        r"\b(?:for example|such as|e\.g\.?|zum Beispiel|z\. ?B\.?)\W*$", said
    ):
        return _Lead(mode="example")
    if force == "permits":
        return _Lead(mode="background")
    bare = said.lower().strip(" *_")
    if force == "asks" or describes_result(said) or bare in _BARE_LEADS:
        return _Lead(_joined(outer.text, sentence), "binds")
    if outer.mode == "binds":
        return _Lead(_joined(outer.text, sentence), "binds")
    return _Lead(mode=outer.mode)


_FORBIDS = re.compile(r"(?:please\s+)?(?:do not|don.t|never)\b", re.IGNORECASE)
_BARE_LEADS = frozenset(
    ["do", "do not", "don't", "never", "always", "please", "bitte", "nie", "niemals"]
)
_FOLLOWING = re.compile(
    r"\b(?:following|as follows|these|folgende[nrsm]?|wie folgt)\b", re.IGNORECASE
)


_ANSWERS = re.compile(r"(?:because|since it|weil|da )\b", re.IGNORECASE)
"""After a question of its own, a text that begins so asks nobody."""


def _introduces(sentence: str) -> bool:
    """Return whether a sentence before a list leads to it."""
    ending = sentence.rstrip(" *_")[-1:]
    return ending not in ".!?" or _FOLLOWING.search(sentence) is not None


def _is_led_by(following: _Block | None, block: _Block) -> bool:
    """Return whether a list or table begins after the block that the block may lead to."""
    if following is None or following.kind not in ("entry", "row"):
        return False
    if len(following.lists) > len(block.lists):
        return True
    # People set a list below an entry without indenting it.
    below = len(following.lists) == len(block.lists) and following.lists != block.lists
    return below and block.text.rstrip(" *_").endswith(":")


def _joined(outer: str, sentence: str) -> str:
    return f"{outer} {sentence}".strip()


def _short_lead(lead: _Lead) -> str:
    text = " ".join(lead.text.split())
    return f"{shorten_to_start(text, MAX_LEAD)} " if text else ""


@cache
def _heading_mode(words: str) -> Mode:
    known = statement_words()
    if words in known.of_all("result_headings") or words in known.scope:
        return "binds"
    first = words.split(" ", maxsplit=1)[0] if words else ""
    if words in known.of_all("example_headings") or first in {
        "example",
        "examples",
        "beispiel",
        "beispiele",
    }:
        return "example"
    return "background" if words in known.of_all("background_headings") else "open"


# Lists within a text: "It shall: a) parse; b) print."

_LABEL_LINE = re.compile(r"(?<=\n)[^\W\d_a-z][\w-]{1,20}(?: [\w-]{1,20})?:(?=[ \t]+\S)")
_ENTRY_END = re.compile(r"(?:[;,]?\s+(?:and|or|und|oder))?[\s;,]*$")
_MARK = re.compile(r"(?:(?<=\s)|^)\(?(?P<mark>[a-z]|[ivx]{2,5}|\d{1,2})\)\s+(?=\S)")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")


def _inline_marks(text: str) -> list[re.Match[str]]:
    """Return the marks of a list within a text: two or more that count up from the first."""
    found = list(_MARK.finditer(text))
    for names in (
        [chr(ord("a") + n) for n in range(26)],
        [str(n) for n in range(1, 60)],
        list(_ROMAN),
    ):
        marks: list[re.Match[str]] = []
        for match in found:
            if len(marks) < len(names) and match["mark"] == names[len(marks)]:
                marks.append(match)
        if len(marks) > 1:
            return marks
    return []


def _split_inline_list(sentence: str, offset: int, lead: _Lead) -> Iterator[tuple[str, int, _Lead]]:
    marks = _inline_marks(sentence)
    if not marks:
        yield sentence, offset, lead
        return
    said = sentence[: marks[0].start()].strip()
    inner = _lead_of(said, lead) if said else lead
    if inner.mode == "open" and said and not said.endswith(":"):
        yield sentence, offset, lead
        return
    ends = [*(mark.start() for mark in marks[1:]), len(sentence)]
    for mark, end in zip(marks, ends, strict=True):
        entry = re.sub(
            r"[;,]?\s*(?:\b(?:and|or|und|oder))?[\s;,]*$", "", sentence[mark.end() : end]
        )
        yield entry, offset + mark.start(), inner


# The blocks of a text.

_MARKERS = [
    (re.compile(rf"^(\s*){pattern}[ \t]+(?=\S)"), rf"\g<1>{marker} ")
    for pattern, marker in (
        (r"\d{1,3}(?:\.\d{1,3})+\.?", "1."),
        (r"(?:\((?:[ivxIVX]{1,5}|\d{1,3})\)|[ivx]{2,5}\))", "1)"),
        (r"(?:\(?[A-Za-z]\)|[a-z]\.(?!\s?\w\.))", "+"),
        ("[\u2190-\u2bff\U0001f300-\U0001faff]\ufe0f?", "*"),
        ("[\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u00b7\uf0b7]", "*"),
        ("[\u2013\u2014]", "-"),
    )
]
"""Marks of list entries that Markdown does not know, each with a mark for the same list. Marks of
different kinds stay different, since a list often stands below another without being indented."""
_NUMBER = re.compile(r"^(?P<indent>\s*)(?P<number>\d{1,3})(?P<ending>[.)])(?=\s+\S)")
_ANY_MARKER = re.compile(r"^\s*(?:[-*+\u2022\u2013\u2014\u25cf\uf0b7]|\(?(?:\d{1,3}|\w)[.)])\s")
_FENCE = re.compile(r"^\s*(?:(?:[-*+]|\d+[.)])\s+)?(?P<fence>```+|~~~+)(?P<after>.*)$")
_QUOTE = re.compile(r"^\s*>")
_PAGE_MARK = re.compile(r"^\[page \d+[^\[\]]*\]$")
_TAGS = re.compile(
    r"</?(?:br|p|b|i|em|strong|sub|sup|u|span|div|li|ul|ol|details|summary|kbd|code|a|img|hr|mark|small)\b[^<>]*>",
    re.IGNORECASE,
)
_STRUCK_TAGS = re.compile(r"<(del|s|strike)\b[^<>]*>[^<>]*</\1\s*>", re.IGNORECASE)
_CHECKBOX = re.compile(r"^\[[^\w\]]?\]\s+|^\[[xX]\]\s+")
_BOLD_ONLY = 7
"""Level of a heading that is only set in bold, or has no mark at all."""


@cache
def _markdown() -> MarkdownIt:
    disabled = ["code", "fence", "html_block", "html_inline", "autolink", "entity", "reference"]
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(disabled)


def _read_blocks(text: str) -> Iterator[_Block]:
    """Yield the blocks of a text without what says nothing."""
    tokens = _markdown().parse("\n".join(_shown_lines(text)))
    blocks = list(_blocks_of(tokens))
    sizes = Counter(block.lists for block in blocks if block.kind == "entry")
    for place, block in enumerate(blocks):
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        alone = block.kind == "paragraph" or (len(block.lists) == 1 and sizes[block.lists] == 1)
        yield from _with_plain_heading(block, following) if alone else [block]


def _shown_lines(text: str) -> list[str]:
    """Return the lines; those of code, comments, quotes and front matter are empty."""
    folded = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = _without_fences(_without_front_matter(folded.replace("\f", " ").split("\n")))
    shown = _without_indented_code(_without_comments("\n".join(lines)).split("\n"))
    counted: set[tuple[int, str]] = set()
    result = []
    for line in shown:
        if number := _NUMBER.match(line):
            # Markdown would let "2." after a line without a mark be a part of that line.
            counted.add((int(number["number"]), number["ending"]))
        again = number and (int(number["number"]) - 1, number["ending"]) in counted
        hidden = _QUOTE.match(line) or _PAGE_MARK.match(line)
        known = _with_known_marker(_NUMBER.sub(r"\g<indent>1\g<ending>", line) if again else line)
        result.append("" if hidden else known)
    return result


def _without_indented_code(lines: list[str]) -> list[str]:
    """Blank indented lines that are neither in a list nor look like sentences."""
    result: list[str] = []
    in_list = code = False
    for number, line in enumerate(lines):
        indented = line.startswith(("    ", "\t"))
        if line.strip() and not indented:
            in_list = bool(_ANY_MARKER.match(line)) or (in_list and line.startswith(" "))
            code = False
        elif (
            indented and line.strip() and not in_list and not (number and lines[number - 1].strip())
        ):
            code = not (line.lstrip()[0].isupper() or _ANY_MARKER.match(line))
        result.append("" if code else line)
    return result


def _with_known_marker(line: str) -> str:
    for pattern, marker in _MARKERS:
        if pattern.match(line):
            return pattern.sub(marker, line)
    return line


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines[0].strip() != "---":
        return lines
    ends = [n for n, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")]
    inside = lines[1 : ends[0]] if ends else []
    if not inside or not all(
        re.match(r"\s*(?:#|-\s|[\w.-]+\s*:)|\s*$|\s+\S", line) for line in inside
    ):
        return lines
    return [""] * (ends[0] + 1) + lines[ends[0] + 1 :]


def _without_fences(lines: list[str]) -> list[str]:
    """Blank the blocks of code; a fence that is never closed hides nothing."""
    result = list(lines)
    closing: dict[str, list[int]] = {"`": [], "~": []}
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare[:3] in ("```", "~~~") and not bare.strip(bare[0]):
            closing[bare[0]].append(number)
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        if opened and "`" not in opened["after"]:
            fence = opened["fence"]
            ends = closing[fence[0]]
            later = ends[bisect_right(ends, number) :][:MAX_FENCES]
            stop = next((n for n in later if len(lines[n].strip()) >= len(fence)), number)
            result[number : stop + 1] = [""] * (stop + 1 - number)
            number = stop
        number += 1
    return result


def _without_comments(text: str) -> str:
    """Blank the comments; one that is never closed hides nothing."""
    parts: list[str] = []
    place = 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[place:start], "\n" * text.count("\n", start, end)]
        place = end + 3
    return "".join([*parts, text[place:]])


@dataclass(slots=True)
class _Table:
    columns: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    line: int = 0


def _blocks_of(tokens: Sequence[Token]) -> Iterator[_Block]:
    lists: list[int] = []
    count = 0
    level = 0
    fresh = False
    table: _Table | None = None
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.type in ("bullet_list_open", "ordered_list_open", "table_open"):
            count += 1
            lists.append(count)
            table = _Table() if token.type == "table_open" else table
        elif token.type in ("bullet_list_close", "ordered_list_close", "table_close"):
            lists.pop()
            table = None if token.type == "table_close" else table
        elif token.type == "list_item_open":
            fresh = True
        elif token.type == "heading_open":
            level = int(token.tag[1:])
        elif token.type == "heading_close":
            level = 0
        elif table is not None:
            if row := _read_table_token(token, table, line, tuple(lists)):
                yield row
        elif token.type == "inline":
            text = _inline_text(token)
            if level:
                yield _Block("heading", text, line, level)
            else:
                kind: Literal["entry", "paragraph"] = "entry" if fresh and lists else "paragraph"
                yield _Block(kind, _CHECKBOX.sub("", text), line, lists=tuple(lists))
            fresh = False


def _read_table_token(
    token: Token, table: _Table, line: int, lists: tuple[int, ...]
) -> _Block | None:
    if token.type == "tr_open":
        table.cells, table.line = [], line
    elif token.type == "inline":
        table.cells.append(" ".join(_inline_text(token).split()))
    elif token.type == "thead_close":
        table.columns = table.cells
    elif token.type == "tr_close" and table.columns:
        cells, columns = tuple(table.cells), tuple(table.columns)
        return _Block(
            "row", " | ".join(cells), table.line, lists=lists, cells=cells, columns=columns
        )
    return None


def _inline_text(token: Token) -> str:
    """Return the words of a text without marks; struck ones are left out."""
    parts: list[str] = []
    struck = 0
    for child in token.children or []:
        if child.type in ("s_open", "s_close"):
            struck += 1 if child.type == "s_open" else -1
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif child.type in ("text", "code_inline", "text_special") and not struck:
            parts.append(child.content)
    return _TAGS.sub(" ", _STRUCK_TAGS.sub(" ", "".join(parts)))


def _with_plain_heading(block: _Block, following: _Block | None) -> Iterator[_Block]:
    """Yield the block; a heading without a mark as one, apart from the text below it."""
    first, _, rest = block.text.partition("\n")
    if not _looks_like_heading(first):
        yield block
    elif rest.strip():
        if block.kind == "paragraph" and rest.lstrip()[0].isupper() and _is_capital_title(first):
            yield _Block("heading", first, block.line, _BOLD_ONLY)
            yield replace(block, text=rest, line=block.line + 1)
        else:
            yield block
    elif following is None or following.kind == "heading":
        yield block
    elif not block.lists or (len(following.lists) < 2 and following.lists != block.lists):
        yield _Block("heading", first, block.line, _BOLD_ONLY)
    else:
        yield block


def _looks_like_heading(line: str) -> bool:
    words = line.split()
    return (
        0 < len(words) <= 8
        and line.rstrip()[-1] not in ".!?:;,"
        and (line.lstrip()[0].isupper() or line.lstrip()[0].isdigit())
        and not named_results(line)
        and sentence_force(line) == "none"
    )


def _is_capital_title(line: str) -> bool:
    letters = [letter for letter in line if letter.isalpha()]
    numbered = re.match(r"\s*\d{1,2}(?:\.\d{1,2})*\.?\s", line) is not None
    return numbered or (len(letters) > 2 and all(letter.isupper() for letter in letters))


# The list of a scope.


def _begins_list(blocks: Sequence[_Block], place: int) -> bool:
    following = blocks[place + 1] if place + 1 < len(blocks) else None
    return _is_led_by(following, blocks[place])


def _said_in_line(said: str) -> list[str]:
    """Return what stands after "Scope:" in its line, as one entry or those of a list in it."""
    marks = _inline_marks(said)
    if marks:
        return [text for text, _, _ in _split_inline_list(said.strip(), 0, _Lead(mode="binds"))]
    parts = said.split(";") if ";" in said else [said]
    return [" ".join(part.split()).rstrip(".") for part in parts if part.strip(" *_.\n")]


def _entries_below(blocks: Sequence[_Block], place: int) -> list[str]:
    """Return the entries of the lists and tables below a heading, or after a line, of a scope."""
    begin = blocks[place]
    level = begin.level if begin.kind == "heading" else _BOLD_ONLY
    entries: list[tuple[_Block, str]] = []
    left_out = 0
    for number in range(place + 1, len(blocks)):
        block = blocks[number]
        if block.kind == "heading":
            if block.level <= level:
                break
            closes = left_out and block.level <= left_out
            left_out = 0 if closes else left_out
            if _heading_mode(heading_words(block.text)) in ("example", "background"):
                left_out = left_out or block.level
        elif begin.kind != "heading" and not block.lists[len(begin.lists) :]:
            if entries or block.lists != begin.lists:
                break
            break
        elif block.kind in ("entry", "row") and not left_out and block.text.strip():
            entries.append((block, " ".join(block.text.split())))
    return _leaves(entries)


def _leaves(entries: list[tuple[_Block, str]]) -> list[str]:
    """Return the entries without entries of their own, each after those it is below."""
    result: list[str] = []
    above: list[tuple[int, str]] = []
    for number, (block, text) in enumerate(entries):
        depth = len(block.lists)
        while above and above[-1][0] >= depth:
            above.pop()
        deeper = number + 1 < len(entries) and len(entries[number + 1][0].lists) > depth
        if deeper:
            above.append((depth, text.rstrip(":")))
        else:
            result.append(": ".join([*(name for _, name in above), text]))
    return result

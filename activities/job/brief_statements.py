"""The statements of a job's brief: what its sentences and lists ask for, found by code.

A list may also stand within a sentence: "It shall: a) parse; b) print."
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from activities.job.brief_blocks import BOLD_ONLY, Block, is_led_by, read_blocks
from activities.job.brief_leads import (
    Lead,
    Mode,
    heading_mode,
    inline_marks,
    is_brief_lead,
    is_template_title,
    lead_of,
    scenario_demands,
    short_lead,
    split_inline_list,
)
from activities.job.named_results import named_results
from activities.job.statement_checks import find_taken_files
from activities.text.indicators import shipped_indicators
from activities.text.instructing import heading_asks, sentence_force
from activities.text.obligations import has_obligation
from activities.text.safe_text import replace_surrogates
from activities.text.sentence_ends import split_at_sentence_ends
from activities.text.statement_words import heading_words, statement_words
from protocol.short_text import one_line

MAX_TEXT = 400
MAX_HEADING = 120
LEAST_WORDS = 3
"""Words of a sentence that may ask for something: a greeting has fewer."""
PRIORITIES = frozenset(["priority", "prio", "moscow", "priorität"])
"""Columns that say whether a row binds."""
_LABEL_LINE = re.compile(r"(?<=\n)[^\W\d_a-z][\w-]{1,20}(?: [\w-]{1,20})?:(?=[ \t]+\S)")
_SMALL_START = re.compile(r"(?<=[^\W_]{3})[.!?](?=\s+[a-z])|(?<=\.[a-z]{2})[.!?](?=\s+[a-z])")
"""Where a sentence ends and the next begins with a small letter."""
_FIRST_SENTENCE = re.compile(r"(?:[^.!?]|[.!?](?!\s|$))+[.!?]?")
_ENTRY_END = re.compile(r"(?:[;,]?\s+(?:and|or|und|oder))?[\s;,]*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a brief asks for, with its place and the files it names as results."""

    text: str
    path: str
    line: int
    heading: str = ""
    """The nearest heading above it; empty without one."""
    paths: tuple[str, ...] = ()


@dataclass(slots=True)
class _Section:
    level: int
    title: str
    line: int
    mode: Mode
    asks: bool
    expects: bool
    """Whether its prose says what a reporter of a fault expected."""
    filled: bool = False


def brief_statements(text: str, path: str) -> list[Statement]:
    statements = _Reader(path).read(list(read_blocks(text)))
    paths = {path for each in statements for path in each.paths}
    taken = [find_taken_files(each.text, paths) for each in statements]
    gone = set().union(*taken)
    return [
        replace(each, paths=tuple(p for p in each.paths if p in own or p not in gone))
        for each, own in zip(statements, taken, strict=True)
    ]


def unread_sentences(text: str) -> list[str]:
    """Return the sentences of a brief in which nothing was found that is asked for."""
    reader = _Reader("")
    reader.read(list(read_blocks(text)))
    return reader.unread


class _Reader:
    """Goes through the blocks of one brief and keeps the sections and lists it is in."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._abbreviations = shipped_indicators().abbreviations
        self._found: list[Statement] = []
        self.unread: list[str] = []
        """Sentences that ask for nothing, except those below headings of background."""
        self._sections: list[_Section] = []
        self._leads: dict[int, Lead] = {}
        self._bases: dict[int, Lead] = {}

    def read(self, blocks: list[Block]) -> list[Statement]:
        before: Block | None = None
        ends = _ends_of_titles(blocks)
        for place, block in enumerate(blocks):
            if place in ends:
                self._close_sections(BOLD_ONLY)
            following = blocks[place + 1] if place + 1 < len(blocks) else None
            if block.kind == "heading":
                self._begin_section(block)
            else:
                for number in block.lists:
                    if number not in self._leads:
                        outer = self._outer_lead(block.lists, number, before)
                        led = before is not None and is_led_by(block, before)
                        self._leads[number] = self._lead_before(before if led else None, outer)
                        self._bases[number] = self._leads[number]
                self._read_block(
                    block,
                    leads=is_led_by(following, block),
                    siblings=following is not None and following.lists == block.lists != (),
                )
            before = block
        self._close_sections(0)
        return sorted(self._found, key=lambda each: each.line)

    def _begin_section(self, block: Block) -> None:
        self._close_sections(block.level)
        words = heading_words(block.text)
        mode = heading_mode(words)
        asks = mode == "open" and heading_asks(block.text)
        title = one_line(block.text.strip(" *_:"), MAX_HEADING)
        expects = words in statement_words().of_all("expectations")
        self._sections.append(_Section(block.level, title, block.line, mode, asks, expects))

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

    def _outer_lead(self, lists: tuple[int, ...], number: int, before: Block | None) -> Lead:
        place = lists.index(number)
        if place:
            return self._leads[lists[place - 1]]
        if before is not None and before.lists and before.text.rstrip().endswith(":"):
            return self._leads.get(before.lists[-1], Lead(mode=self._mode))
        return Lead(mode=self._mode)

    def _lead_before(self, block: Block | None, outer: Lead) -> Lead:
        if block is None or block.kind in ("heading", "row"):
            if block is not None and block.text.rstrip().endswith(":") and self._sections[-1].asks:
                return Lead(block.text.strip(), "binds")
            return outer
        sentence = self._sentences(block.text)[-1][0] if block.text.strip() else ""
        if not is_brief_lead(sentence):
            return outer
        return lead_of(sentence, outer)

    def _read_block(self, block: Block, *, leads: bool, siblings: bool) -> None:
        lead = self._leads[block.lists[-1]] if block.lists else Lead(mode=self._mode)
        if lead.mode == "example":
            return
        if block.kind == "row":
            self._read_row(block, lead)
            return
        block_lead = (
            lead
            if block.kind == "entry" or (self._sections and self._sections[-1].expects)
            else Lead(mode="open" if lead.mode == "binds" else lead.mode)
        )
        parts = list(self._parts(block.text, block_lead))
        for number, (text, offset, part_lead) in enumerate(parts):
            line = block.line + block.text.count("\n", 0, offset)
            last = number == len(parts) - 1
            if last and leads and is_brief_lead(text) and lead_of(text, lead).mode == "binds":
                continue
            if last and siblings and text.endswith(":") and lead_of(text, lead).mode == "binds":
                self._leads[block.lists[-1]] = lead_of(text, self._bases[block.lists[-1]])
                continue
            answered = not last and _ANSWERS.match(parts[number + 1][0]) and _WHY.match(text)
            if _is_wanted(text, part_lead) and not answered:
                self._add(f"{short_lead(part_lead)}{text}", line)
            elif (
                part_lead.mode == "open"
                and not answered
                and not text.endswith(":")
                and (block.kind == "entry" or len(text.split()) >= LEAST_WORDS)
            ):
                self.unread.append(one_line(text, MAX_HEADING))

    def _parts(self, text: str, lead: Lead) -> Iterator[tuple[str, int, Lead]]:
        """Yield sentences and entries of lists within the text: each with offset and lead.

        The lead of the block applies to its first sentence; the others go by their own words.
        """
        if lead.mode != "background" and (demands := scenario_demands(text)):
            yield from ((demand, offset, Lead(mode="binds")) for demand, offset in demands)
            return
        rest: Mode = "open" if lead.mode == "binds" else lead.mode
        for number, (sentence, offset) in enumerate(self._sentences(text)):
            sentence_lead = lead if number == 0 else Lead(mode=rest)
            yield from split_inline_list(sentence, offset, sentence_lead)

    def _sentences(self, text: str) -> list[tuple[str, int]]:
        """Return the sentences with their offsets; a list within the text stays in one."""
        sentences: list[tuple[str, int]] = []
        start = 0
        marks = inline_marks(text)
        ends = [
            *((label.start(), label.start()) for label in _LABEL_LINE.finditer(text)),
            *((end.end(), end.end()) for end in _SMALL_START.finditer(text) if _goes_on(text, end)),
            *split_at_sentence_ends(text, 0, self._abbreviations),
        ]
        for stop, following in sorted(ends):
            if marks and marks[0].start() <= stop <= marks[-1].end():
                continue
            if text[start:stop].strip() and stop >= start:
                blank = len(text[start:stop]) - len(text[start:stop].lstrip())
                sentences.append((text[start:stop].strip(), start + blank))
            start = following
        return sentences or [(text.strip(), 0)]

    def _read_row(self, block: Block, lead: Lead) -> None:
        cells = [cell for cell in block.cells if cell.strip()]
        words = [heading_words(column) for column in block.columns]
        left_open = statement_words().of_all("open_priorities")
        for word, cell in zip(words, block.cells, strict=False):
            if word in PRIORITIES and heading_words(cell) in left_open:
                return
        demanded = any(heading_mode(column) == "binds" for column in words)
        if lead.mode == "background":
            is_wanted = any(map(_is_obligation, cells))
        else:
            is_wanted = demanded or lead.mode == "binds" or any(map(_is_obligation, cells))
        if is_wanted and cells:
            self._add(f"{short_lead(lead)}{' | '.join(cells)}", block.line)

    def _add(self, text: str, line: int) -> None:
        full = _ENTRY_END.sub("", replace_surrogates(" ".join(text.split())))
        paths = tuple(path for path in named_results(full) if path != self._path)
        heading = self._sections[-1].title if self._sections else ""
        self._found.append(Statement(one_line(full, MAX_TEXT), self._path, line, heading, paths))
        if self._sections:
            self._sections[-1].filled = True


def _ends_of_titles(blocks: list[Block]) -> set[int]:
    """Return the places of paragraphs that a title directly above its text does not rule.

    A title of a template rules all up to the next title. Others, and the last of all, rule their
    own text: people write on below it.
    """
    ends: set[int] = set()
    titles = [place for place, block in enumerate(blocks) if block.kind == "heading"]
    for place, following in zip(titles, [*titles[1:], len(blocks)], strict=False):
        title, below = blocks[place], blocks[place + 1 : following]
        if title.level < BOLD_ONLY or not below or below[0].line != title.line + 1:
            continue
        if following == len(blocks) or not is_template_title(title.text):
            later = range(place + 2, following)
            free = (n for n in later if blocks[n].kind == "paragraph" and not blocks[n].lists)
            ends.update(list(free)[:1])
    return ends


def _goes_on(text: str, end: re.Match[str]) -> bool:
    """Return whether what follows asks for something by itself, and is no part of the sentence."""
    before = text[max(0, end.start() - 40) : end.start()].rsplit(None, 1)[-1:]
    following = _FIRST_SENTENCE.match(text[end.end() :][:MAX_TEXT].strip())
    abbreviated = bool(before) and before[0].lower() in shipped_indicators().abbreviations
    return not abbreviated and following is not None and sentence_force(following[0]) == "asks"


def _is_wanted(text: str, lead: Lead) -> bool:
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
    if has_obligation(text):
        return True
    return _FORBIDS.match(text) is not None and sentence_force(text) == "asks"


_FORBIDS = re.compile(r"(?:please\s+)?(?:do not|don.t|never)\b", re.IGNORECASE)
_ANSWERS = re.compile(r"(?:because|since it|weil|da )\b", re.IGNORECASE)
"""What begins so answers the question for a reason that stands before it."""
_WHY = re.compile(
    r"(?:(?:and|but|so|then|now|und|aber|dann|also)\b,? )*(?:do you know )?"
    r"(?:why\b|how come\b|warum\b|wieso\b|weshalb\b|wozu\b"
    r"|(?:for|aus) (?:what|which|welchem) (?:reason|grund)\b"
    r"|(?:what|was) (?:is|was|ist|war) (?:the reason|der grund)\b).*\?$|what\b.*\bfor\?$",
    re.IGNORECASE,
)

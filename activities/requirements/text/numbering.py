"""The document's own numbers: the entries of a catalogue, by classes of their form.

Where a document numbers its requirements, these numbers are the ledger: each is cited or set aside.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from activities.requirements.text.candidate_sentences import candidate_binding_force
from activities.requirements.text.imperatives import find_order
from activities.requirements.text.item_numbers import ENTRY, section_number
from activities.requirements.text.sentences import Sentence, cut_sentence

LEAST_ENTRIES = 4
"""Fewer numbers of a form are no numbering."""
DEMANDING_SHARE = 0.6
"""Share of entries that demand something from which a class is taken for requirements."""
ASCENDING_SHARE = 0.9
IDLE_SHARE = 0.1
"""Share below which it is taken for something else."""
MAX_EXAMPLES = 3
MAX_BLOCKS = 6
"""Paragraphs of an entry."""
MAX_PASSAGE = 1500
LEAST_WORDS = 4
_REQUIREMENT_NAME = re.compile(r"(?i)(?:^|[^a-z])(?:\w{0,3}req|anf|rq|shall|fr|nfr)(?![a-z]{4})")
_LABEL = re.compile(r"(?:[^\W\d_][\w-]*\s?){1,3}:(?:\s|$)")
_CRITERION = re.compile(
    r"(?i)(?:[\w ]*criterion|[\w ]*requirement|\w*anforderung|\w*kriterium|rule|regel) N"
)
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A numbered entry of the document: its number as printed and the words that can be cited."""

    id: str
    page: int
    section: str
    passages: tuple[str, ...]
    """Its words, a passage for each paragraph or cell, all on its page."""
    demands: bool
    confidence: float = 1.0
    """The document itself names it, so that no threshold leaves it out."""

    @property
    def text(self) -> str:
        """All of its words."""
        return " ".join(self.passages)


@dataclass(frozen=True, slots=True)
class NumberClass:
    """Entries with numbers of the same form at the same kind of place."""

    name: str
    """Its form: `N.N.N in tables`, `AU-N at headings`."""
    entries: tuple[Entry, ...] = ()

    @property
    def demanding(self) -> int:
        """Number of entries that demand something by their words or form."""
        return sum(entry.demands for entry in self.entries)

    @property
    def are_requirements(self) -> bool | None:
        """Whether its entries are requirements, as far as code can tell; None if it cannot."""
        share = self.demanding / len(self.entries)
        if self.name.endswith(_HEADINGS):
            # Sections have numbers too: only a person or the model says that they are requirements.
            return _CRITERION.match(self.name) is not None
        if share >= DEMANDING_SHARE or _names_requirement(self.entries):
            return True
        return False if share < IDLE_SHARE else None

    @property
    def description(self) -> str:
        """One line: its form, how many there are, and examples."""
        examples = ", ".join(entry.id for entry in self.entries[:MAX_EXAMPLES])
        return (
            f"{self.name}: {len(self.entries):,} entries ({examples} …), of which "
            f"{self.demanding:,} demand something by their words"
        )


_TABLES, _LINES, _ALONE, _HEADINGS = " in tables", " before a text", " above a text", " at headings"


@dataclass
class _Found:
    place: str
    number: str
    sentences: list[Sentence] = field(default_factory=list)


def find_number_classes(sentences: Iterable[Sentence]) -> list[NumberClass]:
    """Return the numbering classes of a document, those with most entries first."""
    found = _gather_entries(sentences)
    classes: dict[str, list[_Found]] = {}
    for entry in found:
        classes.setdefault(_form(entry.number, entry.place) + entry.place, []).append(entry)
    result = []
    for name, members in classes.items():
        once = {entry.number: entry for entry in reversed(members) if entry.sentences}
        column = _column_of_text(list(once.values())) if name.endswith(_TABLES) else 0
        entries = [_as_entry(once[number], column) for number in reversed(once)]
        if len(entries) >= LEAST_ENTRIES and _ascend(list(reversed(once))):
            result.append(NumberClass(name, tuple(entries)))
    return sorted(result, key=lambda each: (-len(each.entries), each.name))


def _gather_entries(sentences: Iterable[Sentence]) -> list[_Found]:
    found: list[_Found] = []
    for sentence in sentences:
        named = ENTRY.fullmatch(sentence.text.strip()) or ENTRY.match(sentence.text)
        alone = named is not None and named.end() >= len(sentence.text.strip())
        last = found[-1] if found else None
        if sentence.column:
            if not sentence.number:
                continue
            if (
                last is None
                or (last.place, last.number) != (_TABLES, sentence.number)
                or (sentence.column == 1)
            ):
                found.append(_Found(_TABLES, sentence.number))
            if sentence.column > 1:
                found[-1].sentences.append(sentence)
        elif sentence.is_heading:
            number = section_number(sentence.section)
            is_section = (
                section_number(sentence.text) == number or sentence.text in sentence.section
            )
            found.append(_Found(_HEADINGS, number) if number and is_section else _Found("", ""))
        elif sentence.begins_block and named and alone and _is_name(named[1]):
            found.append(_Found(_ALONE, named[1]))
        elif sentence.begins_block and sentence.number and ENTRY.fullmatch(sentence.number):
            if sentence.is_item or (named and _is_name(named[1])):
                found.append(_Found(_LINES, sentence.number, [sentence]))
            elif last and last.place:
                last.sentences.append(sentence)
        elif last and last.place and last.place != _TABLES:
            last.sentences.append(sentence)
    return [entry for entry in found if entry.place]


def _is_name(number: str) -> bool:
    return bool(re.search(r"[^\W\d_]", number)) or number.count(".") > 1


def _form(number: str, place: str) -> str:
    """Return the form of a number, which all numbers of its class have."""
    if "~" in number:
        return f"{number.split('~', maxsplit=1)[0]}~…~N"
    if " " in number:
        return _DIGITS.sub("N", number)
    letters = _LETTERS.match(number)
    if place == _TABLES and letters:
        return "A.N" if "." in number else "A-N"
    if letters:
        return letters[0] + ("-" if "-" in number else "_" if "_" in number else "") + "N"
    return _DIGITS.sub("N", number)


def _column_of_text(entries: Sequence[_Found]) -> int:
    """Return the column of a table that demands most, else the one with most words."""
    demands: dict[int, int] = {}
    words: dict[int, int] = {}
    for entry in entries:
        seen = set()
        for sentence in entry.sentences:
            words[sentence.column] = words.get(sentence.column, 0) + len(sentence.text.split())
            if sentence.column not in seen and _demands(sentence):
                seen.add(sentence.column)
                demands[sentence.column] = demands.get(sentence.column, 0) + 1
    return max(words, key=lambda each: (demands.get(each, 0), words[each]), default=0)


def _ascend(numbers: Sequence[str]) -> bool:
    """Whether bare numbers grow as those of a catalogue do, and not as references in a text."""
    if any(re.search(r"[^\W\d_]", number) for number in numbers):
        return True
    keys = [tuple(map(int, _DIGITS.findall(number))) for number in numbers]
    growing = sum(one < other for one, other in itertools.pairwise(keys))
    return growing >= ASCENDING_SHARE * (len(keys) - 1)


def _as_entry(found: _Found, column: int) -> Entry:
    own = [each for each in found.sentences if not column or each.column == column]
    own = own or found.sentences
    if found.place == _HEADINGS:
        # "(Level A)" says nothing yet.
        while len(own) > 1 and len(own[0].text.split()) < LEAST_WORDS:
            own = own[1:]
    blocks: list[list[Sentence]] = []
    for sentence in own:
        if sentence.page != own[0].page:
            break
        if sentence.begins_block or not blocks:
            if blocks and (
                _ends_entry(found.place, blocks[-1], sentence) or len(blocks) >= MAX_BLOCKS
            ):
                break
            blocks.append([])
        blocks[-1].append(sentence)
    passages = tuple(
        cut_sentence(" ".join(each.text for each in block), MAX_PASSAGE) for block in blocks
    )
    demands = any(_demands(each) for block in blocks for each in block)
    return Entry(found.number, own[0].page, own[0].section, passages, demands)


def _ends_entry(place: str, before: list[Sentence], after: Sentence) -> bool:
    """Whether a paragraph is no part of the entry any more: "Rationale:", "Covers:", other text."""
    if before[-1].full_text.endswith(":") and after.is_item:
        return False
    if place == _ALONE:
        return _LABEL.match(after.text) is not None
    return not after.is_item or place != _HEADINGS


def _demands(sentence: Sentence) -> bool:
    return (
        candidate_binding_force(sentence.full_text) is not None
        or find_order(sentence.full_text, item=sentence.is_item) is not None
    )


def _names_requirement(entries: Sequence[Entry]) -> bool:
    return all(_REQUIREMENT_NAME.search(entry.id) for entry in entries)

"""The document's own numbers: the entries of a catalogue, by classes of their form.

Where a document numbers its requirements, these numbers are the ledger: each is cited or set aside.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from activities.requirements.text.candidate_sentences import candidate_binding_force
from activities.requirements.text.imperatives import find_imperative
from activities.requirements.text.item_numbers import ENTRY, section_number
from activities.requirements.text.sentences import Sentence, cut_sentence

LEAST_ENTRIES = 4
"""Fewer numbers of a form are no numbering."""
DEMANDING_SHARE = 0.6
"""Share of entries that demand something from which a class is taken for requirements."""
ASCENDING_SHARE = 0.9
IDLE_SHARE = 0.1
"""Share below which it is taken for something else."""
COLUMN_SHARE = 0.9
"""Share of a column's cells that demand something from which the column has requirements too."""
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
class NumberedEntry:
    """A numbered entry of the document: its number as printed and the words that can be cited."""

    id: str
    page: int
    section: str
    passages: tuple[str, ...]
    """Its words, a passage for each paragraph or cell, all on its page."""
    demands: bool
    confidence: float = 1.0
    """The document itself names it, so that no threshold leaves it out."""
    rest: str = ""
    """What of it stands on the next page."""

    @property
    def text(self) -> str:
        return " ".join(self.passages)


@dataclass(frozen=True, slots=True)
class NumberClass:
    """Entries with numbers of the same form at the same kind of place."""

    name: str
    """Its form: `N.N.N in tables`, `AU-N at headings`."""
    entries: tuple[NumberedEntry, ...] = ()

    @property
    def demanding(self) -> int:
        return sum(entry.demands for entry in self.entries)

    @property
    def are_requirements(self) -> bool | None:
        """Whether its entries are requirements, as far as code can see; None if it cannot."""
        share = self.demanding / len(self.entries)
        if self.name.endswith(_HEADINGS):
            # Sections have numbers too: only a person or the model says that they are requirements.
            return _CRITERION.match(self.name) is not None
        if share >= DEMANDING_SHARE or all(
            _REQUIREMENT_NAME.search(entry.id) for entry in self.entries
        ):
            return True
        # A name set above each text is no accident.
        return False if share < IDLE_SHARE and not self.name.endswith(_ALONE) else None

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
    gathered = _gather_entries(sentences)
    classes: dict[str, list[_Found]] = {}
    for entry in gathered:
        classes.setdefault(_form(entry.number, entry.place) + entry.place, []).append(entry)
    result = []
    for name, members in classes.items():
        once = {entry.number: entry for entry in reversed(members) if entry.sentences}
        columns = _columns_of_text(list(once.values())) if name.endswith(_TABLES) else {0}
        entries = [_as_entry(once[number], columns) for number in reversed(once)]
        if len(entries) >= LEAST_ENTRIES and _ascend(list(reversed(once))):
            result.append(NumberClass(name, tuple(entries)))
    return sorted(result, key=lambda each: (-len(each.entries), each.name))


def _gather_entries(sentences: Iterable[Sentence]) -> list[_Found]:
    gathered: list[_Found] = []
    introduces = False
    for sentence in sentences:
        named = ENTRY.fullmatch(sentence.text.strip()) or ENTRY.match(sentence.text)
        alone = named is not None and named.end() >= len(sentence.text.strip())
        last = gathered[-1] if gathered else None
        if not alone:
            introduces = sentence.full_text.endswith(":")
        if sentence.column:
            if not sentence.number:
                continue
            if (
                last is None
                or (last.place, last.number) != (_TABLES, sentence.number)
                or (sentence.column == 1)
            ):
                gathered.append(_Found(_TABLES, sentence.number))
            if sentence.column > 1:
                gathered[-1].sentences.append(sentence)
        elif sentence.is_heading:
            number = section_number(sentence.section)
            is_section = (
                section_number(sentence.text) == number or sentence.text in sentence.section
            )
            gathered.append(_Found(_HEADINGS, number) if number and is_section else _Found("", ""))
        elif sentence.begins_block and named and alone and _is_name(named[1]):
            # "Covers:" and a list of numbers: these stand for entries elsewhere.
            refers = introduces and sentence.is_item
            gathered.append(_Found("", "") if refers else _Found(_ALONE, named[1]))
        elif sentence.begins_block and sentence.number and ENTRY.fullmatch(sentence.number):
            if sentence.is_item or (named and _is_name(named[1])):
                gathered.append(_Found(_LINES, sentence.number, [sentence]))
            elif last and last.place:
                last.sentences.append(sentence)
        elif last and last.place and last.place != _TABLES:
            last.sentences.append(sentence)
    return [entry for entry in gathered if entry.place]


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


def _columns_of_text(entries: Sequence[_Found]) -> set[int]:
    """Return the columns of a table with requirements: that which demands most, else has most
    words, and those of which nearly each cell demands something. Others explain.
    """
    words: Counter[int] = Counter()
    cells: Counter[int] = Counter()
    demands: Counter[int] = Counter()
    for entry in entries:
        for each in entry.sentences:
            words[each.column] += len(each.text.split())
        cells.update({each.column for each in entry.sentences})
        demands.update({each.column for each in entry.sentences if _demands(each)})
    best = max(words, key=lambda each: (demands[each], words[each]), default=0)
    return {best} | {each for each in cells if demands[each] >= COLUMN_SHARE * len(entries)}


def _ascend(numbers: Sequence[str]) -> bool:
    """Whether bare numbers grow as those of a catalogue do, and not as references in a text."""
    if any(re.search(r"[^\W\d_]", number) for number in numbers):
        return True
    keys = [tuple(map(int, _DIGITS.findall(number))) for number in numbers]
    growing = sum(lower < other for lower, other in itertools.pairwise(keys))
    return growing >= ASCENDING_SHARE * (len(keys) - 1)


def _as_entry(gathered: _Found, columns: Set[int]) -> NumberedEntry:
    in_columns = [each for each in gathered.sentences if each.column in columns]
    in_columns = in_columns or gathered.sentences
    if gathered.place == _HEADINGS:
        # "(Level A)" says nothing yet.
        while len(in_columns) > 1 and len(in_columns[0].text.split()) < LEAST_WORDS:
            in_columns = in_columns[1:]
    blocks: list[list[Sentence]] = []
    for sentence in in_columns:
        if sentence.page != in_columns[0].page:
            break
        if sentence.begins_block or not blocks:
            if blocks and (
                _ends_entry(gathered.place, blocks[-1], sentence) or len(blocks) >= MAX_BLOCKS
            ):
                break
            blocks.append([])
        blocks[-1].append(sentence)
    passages = tuple(
        cut_sentence(" ".join(each.text for each in block), MAX_PASSAGE) for block in blocks
    )
    sentences = [each for block in blocks for each in block]
    rest = cut_sentence(" ".join(each.rest for each in sentences if each.rest), MAX_PASSAGE)
    demands = any(map(_demands, sentences))
    return NumberedEntry(
        gathered.number, in_columns[0].page, in_columns[0].section, passages, demands, rest=rest
    )


def _ends_entry(place: str, before: list[Sentence], after: Sentence) -> bool:
    """Whether a paragraph is no part of the entry any more: "Rationale:", "Covers:", other text."""
    if before[-1].full_text.endswith(":") and after.is_item:
        return False
    if place == _ALONE:
        return _LABEL.match(after.text) is not None
    return place != _TABLES and (not after.is_item or place != _HEADINGS)


def _demands(sentence: Sentence) -> bool:
    return (
        candidate_binding_force(sentence.full_text) is not None
        or find_imperative(sentence.full_text, item=sentence.is_item) is not None
    )

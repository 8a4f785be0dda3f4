"""The words of `config/briefs/statements.yaml`, by which statements of a brief are found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from pydantic import Field

from activities.text.indicators import FrozenData, LanguageCode
from config.layers import configuration_layers
from config.yaml_files import read_yaml_model

_Words = frozenset[str]


class LanguageWords(FrozenData):
    """Words of one language, in lower case."""

    verbs: _Words = Field(description="Forms with which an instruction begins.")
    also_nouns: _Words = Field(description="Those that may also be the subject of a sentence.")
    before: _Words = Field(description="What may stand before an instruction.")
    clauses: _Words = Field(description="What a clause before an instruction begins with.")
    negations: _Words = Field(description="What makes an instruction of the verb after it.")
    not_instructions: _Words = Field(description="Beginnings that look like an instruction.")
    openers: _Words = Field(description="Beginnings that ask for what follows.")
    permissions: _Words = Field(description="Beginnings that leave free what follows.")
    examples: _Words = Field(description="Beginnings of examples.")
    questions: _Words = Field(description="Words with which a question begins.")
    results: _Words = Field(description="What a job may be asked to make.")
    result_headings: _Words = Field(description="Headings whose lists are demands.")
    example_headings: _Words = Field(description="Headings below which nothing is asked for.")
    background_headings: _Words = Field(description="Headings below which little is asked for.")
    observations: _Words = Field(
        description="Headings and labels of what a reporter of a fault saw."
    )
    expectations: _Words = Field(
        description="Headings and labels of what a reporter of a fault expected."
    )
    open_priorities: _Words = Field(description="Cells of a table whose row binds nobody.")
    given: _Words = Field(description="Words with which what a scenario begins from is said.")
    when: _Words = Field(description="Words with which what happens in a scenario is said.")
    then: _Words = Field(description="Words with which what a scenario demands is said.")
    and_then: _Words = Field(description="Words with which a line goes on like the one before.")
    labels: _Words = Field(description="Labels before a colon that make a demand of what follows.")
    describes: _Words = Field(description="Verbs by which a result is described.")
    forbids: _Words = Field(description="What makes a prohibition, besides `negations`.")
    not_reminders: _Words = Field(description="Negations that demand what follows.")
    manners: _Words = Field(description="All words of sentences on how the work is done.")


class GrammarWords(FrozenData):
    """Closed classes of words, in lower case."""

    determiners: _Words = Field(
        description="After a verb these begin its object; after a noun they cannot stand."
    )
    finite: _Words = Field(description="Verbs that make what is before them a subject.")
    subordinators: _Words = Field(description="Where a clause of its own begins.")
    saying: _Words = Field(
        description="Verbs that may also be nouns, and take a clause with `that`."
    )
    not_verbs: _Words = Field(description="First words before an article that are no verbs.")
    not_shaped: _Words = Field(description="Words with the ending of a verb that are none.")
    will_subjects: _Words = Field(description="What `will` says no duty of.")
    will_events: _Words = Field(description="Verbs after `will` that say no duty.")
    is_to_subjects: _Words = Field(description="What `is to` says no duty of.")
    german_finite: _Words = Field(
        description="Words of German sentences that are no infinitive instruction."
    )
    german_states: _Words = Field(description="Forms after `du` that instruct nobody.")
    inserted: _Words = Field(description="Words within a beginning that ask for nothing.")
    english_states: _Words = Field(description="Verbs after `you` that instruct nobody.")
    objects: _Words = Field(description="What follows a verb that is not listed.")
    german_prefixes: _Words = Field(description="What may stand before a German verb.")
    german_articles: _Words = Field(description="Words with which a German object begins.")
    finite_past: _Words = Field(description="Verbs of a description of what was.")


class StatementWords(FrozenData):
    """`config/briefs/statements.yaml`."""

    languages: dict[LanguageCode, LanguageWords] = Field(description="Words by language.")
    scope: _Words = Field(description="Headings of a scope.")
    writing: _Words = Field(description="Words before the name of a file that is to be written.")
    reading: _Words = Field(description="Words before the name of a file that is there.")
    before_results: _Words = Field(description="Words right before a file that is a result.")
    before_sources: _Words = Field(description="Words right before a file that is there.")
    result_verbs: _Words = Field(description="Words after the name of a file that is demanded.")
    names_result: _Words = Field(description="Words of a sentence that names a file as a result.")

    endings: _Words = Field(description="Endings of names of files.")
    grammar: GrammarWords = Field(description="Words by which forms are distinguished.")

    def of_all(self, kind: str) -> frozenset[str]:
        return frozenset().union(*(getattr(each, kind) for each in self.languages.values()))


@dataclass(frozen=True, slots=True)
class _Opening:
    """How many words a text has that it may open with, longest first."""

    phrases: frozenset[str]
    longest: int


def any_word(words: str) -> re.Pattern[str]:
    """Return what finds one of these words, which are expressions parted by `|`."""
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


@cache
def statement_words() -> StatementWords:
    """Load the shipped words or those that replace them. Raises ConfigError if malformed."""
    path = configuration_layers().find_file("briefs/statements.yaml")
    return read_yaml_model(path, StatementWords)


_WORD = re.compile(r"[\w\u2019'][\w\u2019'./<>*{}-]*|[,;:?!()]")


def heading_words(heading: str) -> str:
    """Return the words of a heading in lower case, without number, marks and colon."""
    bare = re.sub(
        r"^[\W_]*(?:(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})(?:\.\d{1,3})*[.):]?\s+(?=\S))?", "", heading
    )
    if re.match(r"^(?:a|i)\s", heading.strip().lower()):
        bare = heading
    return " ".join(re.findall(r"[\w-]+", re.sub(r"\([^()]*\)", " ", bare).lower()))


def words_of(text: str) -> list[str]:
    return [
        word.lower().rstrip(".-/") or word for word in _WORD.findall(text.replace("\u2019", "'"))
    ]


@cache
def _opening(kind: str) -> _Opening:
    phrases = frozenset(" ".join(words_of(phrase)) for phrase in statement_words().of_all(kind))
    return _Opening(phrases, max((phrase.count(" ") + 1 for phrase in phrases), default=0))


def opens_with(words: Sequence[str], kind: str) -> int:
    """Return how many words at the beginning are a phrase of that kind, of which the longest."""
    opening = _opening(kind)
    for count in range(min(opening.longest, len(words)), 0, -1):
        if " ".join(words[:count]) in opening.phrases:
            return count
    return 0


def is_finite(word: str) -> bool:
    """Return whether a word makes the one before it a subject: "is", or "resolves"."""
    known = statement_words()
    if word in known.grammar.finite:
        return True
    verbs = known.languages["en"].verbs - known.languages["en"].also_nouns
    return word.endswith("s") and (
        word[:-1] in verbs or (word.endswith("es") and word[:-2] in verbs)
    )


def is_verb(word: str) -> bool:
    return word in statement_words().of_all("verbs")

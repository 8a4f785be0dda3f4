"""Whether a sentence asks for something: it binds, instructs or asks a question.

Words of obligation are those of `activities.text.indicators`; imperatives are told by the words of
`config/briefs/statements.yaml`, by their form and by their place. Python's `re` is used on single
sentences only, with expressions that cannot backtrack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import ConfigDict, Field

from activities.text.indicators import LanguageCode, shipped_indicators
from config.layers import configuration_layers
from config.yaml_files import read_yaml_model
from protocol.data_model import Data

Force = Literal["asks", "permits", "example", "none"]
"""What a sentence does: it asks for something, leaves it free, gives an example, or none."""
MAX_SENTENCE = 2000
"""Longest part of a sentence that is looked at, in characters."""
LEAST_CONFIDENCE = 0.5
"""Phrases of obligation up to this confidence also stand in descriptions, such as `cannot`."""
_Words = frozenset[str]


class LanguageWords(Data):
    """Words of one language, in lower case."""

    model_config = ConfigDict(frozen=True)

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
    labels: _Words = Field(description="Labels before a colon that make a demand of what follows.")
    describes: _Words = Field(description="Verbs by which a result is described.")


class GrammarWords(Data):
    """Closed classes of words, in lower case."""

    model_config = ConfigDict(frozen=True)

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
    finite_past: _Words = Field(description="Verbs of a description of what was.")


class StatementWords(Data):
    """`config/briefs/statements.yaml`."""

    model_config = ConfigDict(frozen=True)

    languages: dict[LanguageCode, LanguageWords] = Field(description="Words by language.")
    scope: _Words = Field(description="Headings of a scope.")
    writing: _Words = Field(description="Words before the name of a file that is to be written.")
    reading: _Words = Field(description="Words before the name of a file that is there.")
    before_results: _Words = Field(description="Words right before a file that is a result.")
    before_sources: _Words = Field(description="Words right before a file that is there.")
    result_verbs: _Words = Field(description="Words after the name of a file that is demanded.")
    names_result: _Words = Field(description="Words of a sentence that names a file as a result.")

    endings: _Words = Field(description="Endings of names of files.")
    grammar: GrammarWords = Field(description="Words by which forms are told apart.")

    def of_all(self, kind: str) -> frozenset[str]:
        """Return the words of one kind in all languages."""
        return frozenset().union(*(getattr(each, kind) for each in self.languages.values()))


@dataclass(frozen=True, slots=True)
class _Opening:
    """How many words a text has that it may open with, longest first."""

    phrases: frozenset[str]
    longest: int


@cache
def statement_words() -> StatementWords:
    """Load the shipped words or those that replace them. Raises ConfigError if malformed."""
    path = configuration_layers().find_file("briefs/statements.yaml")
    return read_yaml_model(path, StatementWords)


_WORD = re.compile(r"[\w\u2019'][\w\u2019'./<>*{}-]*|[,;:?!()]")
_LABEL = re.compile(
    r"\s*(?:[^\W_][\w'/&-]{0,30} ){0,3}[^\W_][\w'/&-]{0,30}"
    r"(?: ?\([^()]{0,40}\))? ?[:\u2013\u2014]\s+(?=\S)"
)
_EDGES = " \t*_\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb()[]"
_FORM = re.compile(r"(?:ly|ing|ed|(?<!s)s|day|tion|ment|ness|ity|ance|ence|ers?|ists?)$")
_PREFIX = re.compile(
    r"(?:re|un|de|dis|pre|over|co|auto|cross|double|back|self|fine|hard|spell|proof)-?(?=\w{3})"
)
_SHAPED = re.compile(r"[a-z]{3,}(?:ify|ize|ise)$")
_INDIRECT = re.compile(
    r"\b(?:what|whether|how|why|who|was|ob|wie|warum|wer)\b(?:\s+[\w'-]+){0,3}?\s+"
    r"(?:must|should|shall|has to|have to|needs to|need to|is to be|are to be|ought to"
    r"|muss|müssen|soll|sollen|sollte|sollten)\b",
    re.IGNORECASE,
)
_MODALS = r"(?:must|shall|should|may|will|can|muss|soll|sollte|darf|kann)(?:\s+(?:not|nicht))?"
_SHORT_NOT = re.compile(r"\b(is|are|should|do|does|has|have|need)n't\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"(?<=\S\s)[\"\u201c\u201e\u00ab][^\"\u201c\u201d\u201e\u00ab\u00bb]{1,200}[\"\u201c\u201d\u00bb]"
)
_MENTION = re.compile(
    rf"\b{_MODALS}(?:\s*(?:,|/|\band|\bor|\bund|\boder)\s*(?:(?:and|or|und|oder)\s+)?{_MODALS}\b)+",
    re.IGNORECASE,
)
"""Words of obligation that are spoken of: "It says must, must not or should"."""
_WILL = re.compile(
    r"\b([\w'-]+)(?:\s+(?:also|then|only|always|not|never))?\s+(?:will|won't)\s+(\w+)",
    re.IGNORECASE,
)
_IS_TO = re.compile(
    r"\b(?P<subject>[\w'-]+)\s+(?:is|are)(?:\s+(?:also|then|only|always|not|never))?\s+to\s+(?!the\b|a\b|an\b|this\b|its\b|their\b|our\b|\d)(?P<verb>[a-z]+)\b"
)
_NO_MAY = re.compile(
    r"(?:^|[,;:]\s|\bthat\s)(?:no|none of|neither)\b[^.;:!?]{1,80}\bmay\b", re.IGNORECASE
)
_ZU_FIRST = re.compile(r"(?:^|,\s)zu [a-zäöüß]+(?:en|ern|eln) (?:ist|sind)\b", re.IGNORECASE)
_ZU_SEEN = re.compile(r"\bzu (?:sehen|finden|lesen|erwarten|hören|spüren|erkennen|haben)\b")
_BINDING = frozenset(["obligation", "prohibition", "recommendation"])
_RELATIVES = frozenset(["that", "which", "who"])
_BUT = re.compile(r"[,;]?\s(?:but|however|yet|aber|jedoch)\s|;", re.IGNORECASE)
_BLANKABLE = re.compile(r"[^,]{0,200},")
_CONDITION = re.compile(
    r"\s*(?:if|when|whenever|unless|because|since|although|though|while|wenn|falls|weil|obwohl|da|sollte|sollten)\b",
    re.IGNORECASE,
)
_GERMAN_FORM = re.compile(r"[a-zäöüß]{3,}(?:en|ern|eln)$")


def sentence_force(text: str) -> Force:
    """Return what one sentence, or one list entry, does by its own words."""
    text = text.strip(_EDGES)[:MAX_SENTENCE]
    words = _words_of(text)
    if not words:
        return "none"
    if _opens_with(words, "examples"):
        return "example"
    if _opens_with(_without_leading(words), "permissions"):
        return (
            "asks"
            if _forbids(text) or any(map(has_obligation, _BUT.split(text)[1:]))
            else "permits"
        )
    if has_obligation(text):
        return "asks"
    label = _LABEL.match(text)
    parts = [words, *([_words_of(text[label.end() :])] if label else [])]
    if any(_is_question(part, text) for part in parts):
        return "asks"
    if label and heading_words(label[0]) in statement_words().of_all("labels"):
        return "asks"
    for part in parts:
        bare = _without_leading(part)
        if _opens_with(bare, "permissions"):
            return "permits"
        if _opens_with(bare, "not_instructions"):
            continue
        if _opens_with(bare, "openers") or _is_instruction(part):
            return "asks"
    return "none"


def heading_asks(heading: str) -> bool:
    """Return whether a heading is an instruction or binds, and not the name of a section."""
    words = _words_of(heading.strip(_EDGES))
    if len(words) < 3:
        return False
    if heading.rstrip().endswith("?"):
        return _is_question(words, heading)
    bare = _without_leading(words)
    listed = bool(bare) and (
        (_is_verb(bare[0]) and bare[0] not in statement_words().of_all("also_nouns"))
        or bool(_opens_with(bare, "negations"))
        or (
            len(bare) > 1
            and bare[0] in statement_words().of_all("also_nouns")
            and bare[1] in statement_words().grammar.determiners
        )
    )
    indirect = words[0] in statement_words().of_all("questions")
    return (listed and sentence_force(heading) == "asks") or (
        has_obligation(heading) and not indirect
    )


def describes_result(text: str) -> bool:
    """Return whether a lead-in describes what is to be made: "The report covers:"."""
    words = _words_of(text.rstrip(": "))
    if not words or statement_words().grammar.finite_past & set(words):
        return False
    for language in statement_words().languages.values():
        subject = [n for n, word in enumerate(words) if word in language.results]
        each = words[0] in {"each", "every", "jede", "jeder", "jedes"}
        if (subject and subject[0] <= 5) or each:
            after = words[(subject[0] + 1 if subject else 1) :]
            if any(_is_form_of(word, language.describes) for word in after[:6]):
                return True
    return False


def _is_form_of(word: str, verbs: frozenset[str]) -> bool:
    """Return whether a word is the base or third-person form of one of the verbs."""
    firsts = {verb.split()[0] for verb in verbs}
    return (
        word in firsts
        or word.removesuffix("s") in firsts
        or word.removesuffix("es") in firsts
        or word == "has"
    )


def heading_words(heading: str) -> str:
    """Return the words of a heading in lower case, without number, marks and colon."""
    bare = re.sub(
        r"^[\W_]*(?:(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})(?:\.\d{1,3})*[.):]?\s+(?=\S))?", "", heading
    )
    if re.match(r"^(?:a|i)\s", heading.strip().lower()):
        bare = heading
    return " ".join(re.findall(r"[\w-]+", re.sub(r"\([^()]*\)", " ", bare).lower()))


def _words_of(text: str) -> list[str]:
    return [
        word.lower().rstrip(".-/") or word for word in _WORD.findall(text.replace("\u2019", "'"))
    ]


@cache
def _opening(kind: str) -> _Opening:
    phrases = frozenset(" ".join(_words_of(phrase)) for phrase in statement_words().of_all(kind))
    return _Opening(phrases, max((phrase.count(" ") + 1 for phrase in phrases), default=0))


def _opens_with(words: Sequence[str], kind: str) -> int:
    """Return how many words at the beginning are a phrase of that kind, of which the longest."""
    opening = _opening(kind)
    for count in range(min(opening.longest, len(words)), 0, -1):
        if " ".join(words[:count]) in opening.phrases:
            return count
    return 0


def _without_leading(words: list[str]) -> list[str]:
    """Return the words without those that may stand before an instruction."""
    start = 0
    while start < len(words):
        if words[start] in {",", "(", ")", "!"}:
            start += 1
        elif count := _opens_with(words[start : start + 5], "before"):
            start += count
        elif (
            words[start].endswith("ly")
            and start + 1 < len(words)
            and (_is_verb(words[start + 1]) or words[start + 1] == ",")
        ):
            start += 1
        else:
            break
    return words[start:]


def has_obligation(text: str) -> bool:
    """Return whether a sentence binds by its words of obligation."""
    said = _QUOTED.sub(" ", _SHORT_NOT.sub(r"\1 not", text.replace("\u2019", "'")))
    searched = _MENTION.sub(" ", _INDIRECT.sub(" ", said))
    if _CONDITION.match(searched) and (condition := _BLANKABLE.match(searched)):
        searched = searched[condition.end() :]
    for hit in shipped_indicators().find(searched):
        if hit.modality in _BINDING and hit.confidence > LEAST_CONFIDENCE:
            found = searched[hit.start : hit.end]
            # Of words with a gap between them, a single comma within parts two clauses.
            parted = "\u2026" in hit.words and found.count(",") == 1
            if (
                not parted
                and not _ZU_SEEN.search(found)
                and not _is_of_subject(searched, hit.start)
            ):
                return True
    will = any(
        match[1].lower() not in statement_words().grammar.will_subjects
        and match[2].lower() not in statement_words().grammar.will_events
        for match in _WILL.finditer(searched)
    )
    is_to = any(
        match["subject"].lower() not in statement_words().grammar.is_to_subjects
        for match in _IS_TO.finditer(searched)
    )
    return will or is_to or any(each.search(searched) for each in (_NO_MAY, _ZU_FIRST))


def _forbids(text: str) -> bool:
    return any(hit.modality == "prohibition" for hit in shipped_indicators().find(text))


def _is_of_subject(text: str, place: int) -> bool:
    """Return whether the words there describe a subject: "Files that it may not write are kept"."""
    before = _words_of(text[max(0, place - 120) : place])
    last = range(1, min(6, len(before) + 1))
    relative = next((n for n in last if before[-n] in _RELATIVES), 0)
    return relative > 0 and not any(
        _is_finite(word) or _is_verb(word) or word in _RELATIVES or word == ","
        for word in before[:-relative]
    )


def _is_question(words: list[str], text: str) -> bool:
    if not text.rstrip("*_\"')\u201d\u201c ").endswith("?") or len(words) < 4:
        return False
    bare = _without_leading(words)
    questions = statement_words().of_all("questions")
    starts = [bare[:3], *(bare[n + 1 : n + 4] for n, word in enumerate(bare) if word in ",:;")]
    return any(
        start and (start[0] in questions or (start[1:2] and start[1] in questions))
        for start in starts
    )


def _is_instruction(words: list[str]) -> bool:
    bare = _without_leading(words)
    if not bare:
        return False
    if len(bare) == 1:
        return len(words) > 1 and _is_verb(bare[0])
    if _instructs_at_start(bare):
        return True
    if _is_request(bare):
        return True
    if bare[0] == "du" and len(bare) > 2:
        return bare[1].endswith("st") and bare[1] not in statement_words().grammar.german_states
    if bare[0] == "you" and len(bare) > 2:
        return _is_verb(bare[1]) and bare[1] not in {
            "have",
            "need",
            "know",
            "see",
            "be",
            "expect",
            "prefer",
            "do",
        }
    if _begins_clause(bare) or bare[0].endswith("ing"):
        return any(_instructs_at_start(part, strict=True) for part in _after_commas(bare)) or (
            _instructs_inverted(bare)
        )
    return False


def _is_request(words: list[str]) -> bool:
    """Return whether "please" makes it a request, or "so" leads to an instruction."""
    for place, word in enumerate(words):
        if word in {"please", "bitte"}:
            return len(words) > 2 and not _opens_with(words[place + 1 :], "not_instructions")
        if word in {"so", "then", "also"} and place and words[place - 1] in {",", ";"}:
            after = _without_leading(words[place:])
            if (
                len(after) > 1
                and _is_determiner(after[1])
                and _instructs_at_start(after, strict=True)
            ):
                return True
    return False


def _begins_clause(words: Sequence[str]) -> bool:
    """Return whether the words begin like a clause; "an" begins one in German alone."""
    language = shipped_indicators().language_of(" ".join(words[:40]))
    clauses = statement_words().languages[language].clauses
    return words[0] in clauses or " ".join(words[:2]) in clauses


def _after_commas(words: list[str]) -> Iterator[list[str]]:
    for place in [n for n, word in enumerate(words) if word in {",", ":"}][:6]:
        part = _without_leading(words[place + 1 :])
        if part and not _opens_with(part, "not_instructions"):
            yield part


def _instructs_at_start(words: list[str], *, strict: bool = False) -> bool:
    """Return whether the words begin with a bare verb form, or with one that is negated."""
    if count := _opens_with(words, "negations"):
        return _is_negated_verb(words[:count], _without_leading(words[count:]))
    first, after = words[0], words[1:]
    if _is_polite_german(first, after) or _is_german_infinitive(words):
        return True
    if first not in statement_words().of_all("verbs"):
        return _is_unlisted_verb(first, after)
    if strict and first in {"do", "have", "be"} and after[:1] and not _is_determiner(after[0]):
        return False
    if first not in statement_words().of_all("also_nouns"):
        return not after or not _is_finite(after[0])
    return _is_verb_in_place(first, after, strict=strict)


def _is_negated_verb(negation: list[str], after: list[str]) -> bool:
    """Return whether it is like "Do not guess" or "Never guess", and not like "never deleted"."""
    if (
        not after
        or after[0] in {"you", "we", "they", "i"}
        or not after[0].replace("-", "").isalpha()
    ):
        return False
    if negation[:1] == ["never"] and not _is_verb(after[0]):
        return not (_is_finite(after[0]) or _FORM.search(after[0]))
    return not _is_finite(after[0])


def _is_finite(word: str) -> bool:
    """Return whether a word makes the one before it a subject: "is", or "resolves"."""
    known = statement_words()
    if word in known.grammar.finite:
        return True
    verbs = known.languages["en"].verbs - known.languages["en"].also_nouns
    return word.endswith("s") and (
        word[:-1] in verbs or (word.endswith("es") and word[:-2] in verbs)
    )


def _is_determiner(word: str) -> bool:
    return word in statement_words().grammar.determiners


def _is_verb(word: str) -> bool:
    return word in statement_words().of_all("verbs")


def _is_verb_in_place(first: str, after: list[str], *, strict: bool) -> bool:
    """Return whether a word that may be a noun is a verb by what comes after it."""
    if not after or after[0] in {":", ",", ")"}:
        return False
    if first in statement_words().languages["de"].verbs:
        return after[0] not in {"der", "des", "von", "vom", "mit", "für"}
    if after[0] == "that":
        return first in statement_words().grammar.saying
    if (
        after[0] in statement_words().grammar.determiners
        or "." in after[0]
        or "/" in after[0]
        or after[0][0].isdigit()
    ):
        return True
    if after[0].endswith("ed") and len(after[0]) > 3:
        return False
    for word in after[:10]:
        if word in statement_words().grammar.subordinators or word in ",;:()":
            break
        if word in statement_words().grammar.finite:
            return False
    return not strict or after[0] not in {"of"}


def _is_unlisted_verb(first: str, after: list[str]) -> bool:
    """Return whether a word that is not listed is a verb by its form and what comes after it."""
    if (
        not first.isascii()
        or not first.replace("-", "").isalpha()
        or first in statement_words().grammar.not_verbs
    ):
        return False
    if _begins_clause([first]) or _FORM.search(first) or not after:
        return False
    known = (match := _PREFIX.match(first)) is not None and _is_verb(first[match.end() :])
    shaped = _SHAPED.match(first) is not None and first not in statement_words().grammar.not_shaped
    if known or shaped:
        return _is_verb_in_place(first, after, strict=False)
    places = {
        "the",
        "a",
        "an",
        "all",
        "every",
        "each",
        "any",
        "these",
        "those",
        "your",
        "its",
        "it",
        "them",
    }
    return after[0] in places and not any(
        word in statement_words().grammar.finite for word in after[:6]
    )


def _is_polite_german(first: str, after: list[str]) -> bool:
    """Return whether it begins like "Schreiben Sie"."""
    return (
        bool(after)
        and after[0] == "sie"
        and _GERMAN_FORM.match(first) is not None
        and (first not in statement_words().of_all("questions"))
    )


def _is_german_infinitive(words: list[str]) -> bool:
    """Return whether it is an instruction like "Alle Dateien lesen und ablegen"."""
    if words[-1] in {"?", "!"}:
        words = words[:-1]
    german = statement_words().languages["de"]
    return (
        2 <= len(words) <= 40
        and _GERMAN_FORM.match(words[-1]) is not None
        and not statement_words().grammar.german_finite & set(words)
        and _infinitive_verb(words[-1], german.verbs)
    )


def _infinitive_verb(word: str, verbs: frozenset[str]) -> bool:
    """Return whether the infinitive, perhaps with a prefix, is of one of the imperatives."""
    stem = re.sub(r"(?:e(?=rn$|ln$)|en$)", "", word)
    stem = stem.removesuffix("n") if stem.endswith(("rn", "ln")) else stem
    starts = {
        stem,
        *(
            stem.removeprefix(p)
            for p in (
                "ab",
                "an",
                "auf",
                "aus",
                "bei",
                "ein",
                "fest",
                "hinzu",
                "mit",
                "nach",
                "um",
                "vor",
                "weiter",
                "zu",
                "zurück",
                "zusammen",
                "durch",
                "dar",
                "her",
            )
        ),
    }
    return any(f"{start}e" in verbs for start in starts)


def _instructs_inverted(words: list[str]) -> bool:
    """Return whether it is like "Für jede Datei schreibe eine Zeile"."""
    german = statement_words().languages["de"]
    return (
        "ich" not in words
        and any(
            word in german.verbs - german.also_nouns and word.endswith("e") for word in words[1:14]
        )
        and bool(
            {
                "der",
                "die",
                "das",
                "eine",
                "einen",
                "ein",
                "jede",
                "jeden",
                "jedes",
                "alle",
                "den",
                "dem",
            }
            & set(words)
        )
    )

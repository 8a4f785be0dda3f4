"""Orders without a word of obligation: "Verify that …", "Do not store …", "Verwenden Sie …"."""

import re
from dataclasses import dataclass

from activities.text.indicators import ImperativeWords, LanguageCode, Modality, shipped_indicators

LISTED = 0.65
"""Confidence in a verb of the list."""
BY_FORM = 0.5
"""Confidence in a word that looks like a verb by what follows it."""
INFINITIVE = 0.4
LEAST_WORDS = 3
SURE_WORDS = 5
"""Words of a sentence that begins with a verb that is a noun as well."""
CLAUSE_WORDS = 8
"""Words in which the verb of a statement would be, if the first word is a noun."""

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+|[^\w\s]")
_LABEL = re.compile(
    # "Control: Review …", and the term of a glossary: "Allowlist - A list of …".
    r"(([A-Z\u00c4\u00d6\u00dc]\w*)[\w ()/-]{1,80}?)(?::|\s[\u2013\u2014-])\s+"
    r"(?=[A-Z\u00c4\u00d6\u00dc])"
)
_ASIDES = frozenset(
    {
        *("note", "example", "examples", "hint", "tip", "discussion", "rationale", "background"),
        *("see", "hinweis", "beispiel", "anmerkung"),
    }
)
_NOT = re.compile(r"(?:please\s+)?(do not|don['\u2019]t|never)\s+([a-z]+)\b", re.IGNORECASE)
_POLITE = re.compile(
    r"(?:bitte\s+)?([^\W\d_]+(?:en|ern|eln|un) Sie)\b(?!.*\?\s*$)", re.IGNORECASE | re.DOTALL
)
_CONDITION = frozenset(
    {
        *("if", "when", "where", "before", "after", "unless", "until", "once", "while", "for"),
        *("in", "on", "upon", "during", "to", "whenever"),
    }
)
_CLAUSE_ENDS = frozenset(("that", "which", "who", "whether", "how", ","))
_NO_VERB = re.compile(
    r".*(?:[^s]s|ing|ed|ly|ion|ment|ness|ity|ance|ence|ship|ism|al|ous|ful|able|ible|ic)$"
)
_UMLAUT = re.compile(r"[\u00e4\u00f6\u00fc\u00df]", re.IGNORECASE)
_INFINITIVE = re.compile(r"[a-z\u00e4\u00f6\u00fc\u00df]{2,}(?:en|ern|eln)$")
_SUBORDINATE = re.compile(
    r",\s+(?:die|der|das|dem|den|deren|dessen|welche\w*|wenn|soweit|sofern|falls|dass|da\u00df|weil|wo)\b"
)


@dataclass(frozen=True, slots=True)
class Order:
    """An order: its verb as written, and how sure it is one."""

    words: str
    language: LanguageCode
    modality: Modality
    confidence: float


def find_imperative(text: str, *, item: bool) -> Order | None:
    """Return the order that a sentence gives by its form; None if it gives none.

    Args:
        text: A sentence or list item, without its mark.
        item: Whether it is an item of a list or a table cell.
    """
    text = text.lstrip('"\u201c\u201e(*_ \t\n')
    indicators = shipped_indicators()
    data = indicators.data.languages
    english = data["en"].imperatives
    label = _LABEL.match(text)
    not_labels = _ASIDES | (english.verbs - english.nouns)
    if label and not_labels.isdisjoint((label[1].lower(), label[2].lower())):
        text = text[label.end() :]
    words = _WORD.findall(text[:400])
    if _count_words(words) < LEAST_WORDS or text.rstrip().endswith("?"):
        return None
    if match := _NOT.match(text):
        return Order(f"{match[1]} {match[2]}", "en", "prohibition", 0.7)
    if match := _POLITE.match(text):
        return Order(match[1], "de", "obligation", LISTED)
    confidence, verb = _english_order(words, english)
    if confidence and indicators.language_of(text) == "de":
        confidence = 0.0
    if not confidence and words[0].lower() in _CONDITION and "," in words[2:30]:
        # "When users create a password, verify that …"
        rest = words[words.index(",", 2) + 1 :]
        if rest and rest[0] in english.verbs - english.nouns:
            confidence, verb = BY_FORM, rest[0]
    if confidence:
        return Order(verb, "en", "obligation", confidence)
    return _german_order(text, words, data["de"].imperatives, item=item)


def _count_words(words: list[str]) -> int:
    return sum(word[0].isalpha() for word in words)


def _english_order(words: list[str], data: ImperativeWords) -> tuple[float, str]:
    """Return the confidence that the first word is an order, 0 if it is none, and the verb."""
    start = 0
    if words[0].lower() in ("please", "always", "also", "then") or (
        words[0].endswith("ly") and words[1:2] and words[1] in data.verbs
    ):
        start = 1
    if not words[start:][1:]:
        return 0.0, ""
    first, after = words[start].lower(), words[start + 1].lower()
    is_acronym = words[start].isupper() and not words[start + 1].isupper() and len(first) > 1
    if after == ":" or (is_acronym and first in data.nouns):
        return 0.0, ""
    clause = {word.lower() for word in words[start + 1 : start + 1 + CLAUSE_WORDS]}
    until = next(
        (n for n, word in enumerate(words[start + 1 :]) if word.lower() in _CLAUSE_ENDS),
        CLAUSE_WORDS,
    )
    main = {word.lower() for word in words[start + 1 : start + 1 + min(until, CLAUSE_WORDS)]}
    if first in data.verbs:
        is_noun = first in data.nouns and after not in data.objects
        if after in data.finite or (
            is_noun and (_count_words(words) < SURE_WORDS or main & data.finite - {"of"})
        ):
            return 0.0, ""
        return LISTED, words[start]
    if (
        after in data.objects
        and first not in data.others
        and words[start][0].isupper()
        and not _NO_VERB.match(first)
        and not clause & (data.finite - {"of"})
    ):
        return BY_FORM, words[start]
    return 0.0, ""


def _german_order(
    text: str, words: list[str], data: ImperativeWords, *, item: bool
) -> Order | None:
    lower = {word.lower() for word in words}
    if words[0].lower() in data.verbs and not lower & data.finite:
        return Order(words[0], "de", "obligation", LISTED)
    last = text.rstrip(" .;,").rpartition(" ")[2]
    if (
        item
        and _INFINITIVE.match(last)
        and words[0][0].isupper()
        and not lower & data.finite
        and not _SUBORDINATE.search(text)
        and (_UMLAUT.search(text) or shipped_indicators().language_of(text) == "de")
        and last not in data.finite
        and len(text) < 300
    ):
        return Order(last, "de", "obligation", INFINITIVE)
    return None

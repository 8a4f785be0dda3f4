"""The phrases of `config/requirements/indicators.yaml`, compiled for search in sentences.

A linear-time engine searches for all phrases at once, so neither a long list nor a hostile
document makes it slow.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import re2
from pydantic import ConfigDict, Field

from config.layers import configuration_layers
from config.regexes import compile_cached_regex
from config.yaml_files import read_yaml_model
from protocol.data_model import Data

LanguageCode = Literal["en", "de"]
Modality = Literal["obligation", "prohibition", "permission", "recommendation"]
_Confidence = Annotated[float, Field(gt=0, le=1)]


class FrozenData(Data):
    model_config = ConfigDict(frozen=True)


class ImperativeWords(FrozenData):
    """By what an order at the beginning of a sentence is recognised."""

    verbs: frozenset[str] = Field(description="Verbs in the form of an order.")
    nouns: frozenset[str] = Field(
        default_factory=frozenset, description="Those that are nouns as well, such as record."
    )
    objects: frozenset[str] = Field(
        default_factory=frozenset,
        description="Words after which the word before is a verb, such as the.",
    )
    others: frozenset[str] = Field(
        default_factory=frozenset, description="First words that are never such a verb."
    )
    finite: frozenset[str] = Field(description="Verbs of a statement, which an order has not.")


class LanguageIndicators(FrozenData):
    words: frozenset[str] = Field(description="Frequent words, to recognise the language by.")
    abbreviations: frozenset[str] = Field(description="After these a full stop ends nothing.")
    exclusions: list[str] = Field(description="Phrases taken out before any other is sought.")
    modality: dict[Modality, dict[str, _Confidence]] = Field(
        description="Phrases of obligation and the like, each with its confidence."
    )
    imperatives: ImperativeWords = Field(description="Orders, without a word of obligation.")


class RegulationTerms(FrozenData):
    names: list[str] = Field(description="What the regulation and its parts are called.")
    terms: list[str] = Field(description="What it is about.")


class MeaningWords(FrozenData):
    """Words by which two statements are compared, of all languages together."""

    negations: frozenset[str] = Field(description="Words such as not.")
    limits: frozenset[str] = Field(description="Words such as only, which negate in part.")
    numbers: dict[int, list[str]] = Field(description="Numbers in words.")
    units: dict[str, list[str]] = Field(description="Units, each with the words for it.")


class Indicators(FrozenData):
    languages: dict[LanguageCode, LanguageIndicators] = Field(description="Phrases by language.")
    meaning: MeaningWords = Field(description="Words by which statements are compared.")
    regulations: dict[str, RegulationTerms] = Field(description="Phrases by regulation.")


@dataclass(frozen=True, slots=True)
class IndicatorHit:
    start: int
    end: int
    words: str
    language: LanguageCode | None
    modality: Modality | None
    regulation: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class _Phrase:
    phrase: str
    language: LanguageCode | None = None
    modality: Modality | None = None
    regulation: str | None = None
    confidence: float = 0.0


class IndicatorMatcher:
    """All phrases of `data`, compiled."""

    def __init__(self, data: Indicators) -> None:
        self.data = data
        self.abbreviations = frozenset().union(*(x.abbreviations for x in data.languages.values()))
        self.words = frozenset().union(*(x.words for x in data.languages.values()))
        excluded = [x for language in data.languages.values() for x in language.exclusions]
        # Compiled at first use: a text has few of them, and all take a third of a second.
        self._excluded = [_indicator_pattern(phrase) for phrase in excluded]
        self._phrases = list(_list_indicator_phrases(data))
        self._patterns = [_indicator_pattern(phrase.phrase) for phrase in self._phrases]
        self._all = re2.Set.SearchSet()
        for phrase in [*(phrase.phrase for phrase in self._phrases), *excluded]:
            self._all.Add(_indicator_sieve_pattern(phrase))
        self._all.Compile()

    def find(self, text: str) -> list[IndicatorHit]:
        """Return the phrases by position, the longest of nested ones, whatever their dashes."""
        text = text.translate(_TYPOGRAPHY)
        matched = sorted(self._all.Match(text) or [])
        phrase_count = len(self._phrases)
        for number in matched:
            if number >= phrase_count:
                pattern = compile_cached_regex(self._excluded[number - phrase_count])
                text = _blank_excluded_indicators(pattern, text)
        hits = [
            hit
            for number in matched
            if number < phrase_count
            for hit in self._phrase_hits(number, text)
        ]
        hits.sort(key=lambda hit: (hit.start, -hit.end))
        return list(_drop_nested_indicators(hits))

    def _phrase_hits(self, number: int, text: str) -> list[IndicatorHit]:
        phrase = self._phrases[number]
        return [
            IndicatorHit(
                start=match.start(1),
                end=match.end(1),
                words=_indicator_words(match[1], phrase.phrase),
                language=phrase.language,
                modality=phrase.modality,
                regulation=phrase.regulation,
                confidence=phrase.confidence,
            )
            for match in compile_cached_regex(self._patterns[number]).finditer(text)
        ]

    def language_of(self, text: str) -> LanguageCode:
        """Return the language with most of its frequent words in the text; English if in doubt."""
        words = re.findall(r"\w+", text.lower())
        counts = {
            code: sum(word in language.words for word in words)
            for code, language in self.data.languages.items()
        }
        return max(counts, key=lambda code: (counts[code], code == "en"))


@cache
def shipped_indicators() -> IndicatorMatcher:
    """Load the shipped phrases or those that replace them. Raises ConfigError if malformed."""
    path = configuration_layers().find_file("requirements/indicators.yaml")
    return IndicatorMatcher(read_yaml_model(path, Indicators))


def _list_indicator_phrases(data: Indicators) -> list[_Phrase]:
    return [
        *(
            _Phrase(phrase, code, modality, None, confidence)
            for code, language in data.languages.items()
            for modality, phrases in language.modality.items()
            for phrase, confidence in phrases.items()
        ),
        *(
            _Phrase(phrase, regulation=name)
            for name, regulation in data.regulations.items()
            for phrase in [*regulation.names, *regulation.terms]
        ),
    ]


_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u02bc\u00b4\u0060", "'"),
        **dict.fromkeys("\u2010\u2011\u2212", "-"),
        **dict.fromkeys("\u00a0\u2007\u202f\u2009", " "),
    }
)
_GROUPS = {"(": "(?:", ")": ")", "|": "|"}
_NOTATION = {"*": r"\pL*", "+": r"[a-zäöüß]{3,}", "...": r"\PL(?:[^;:!?]*?\PL)??", "": r"\s+"}
_SIEVE = {"*": r"\S*", "+": r"\S+", "": r"\s+"}


def _indicator_pattern(phrase: str) -> str:
    case = "" if phrase.startswith("=") else "(?i)"
    # The engine's \b knows ASCII letters only.
    return rf"{case}(?:^|[^\pL\pN_])({_indicator_pattern_body(phrase, _NOTATION)})(?:$|[^\pL\pN_])"


def _indicator_sieve_pattern(phrase: str) -> str:
    """Return a coarser expression that matches wherever the phrase does: its words before the
    first gap.

    Together the sieves form one small automaton that selects in a single pass the phrases worth an
    exact search."""
    return f"(?i){_indicator_pattern_body(phrase.split('...', maxsplit=1)[0].rstrip(), _SIEVE)}"


def _indicator_pattern_body(phrase: str, notation: dict[str, str]) -> str:
    parts = re.split(r"(\s*\.\.\.\s*|\s+|[*+()|])", phrase.removeprefix("="))
    known = notation | _GROUPS
    return "".join(
        known[part.strip()] if part.strip() in known else re2.escape(part) for part in parts if part
    )


def _indicator_words(matched: str, phrase: str) -> str:
    words = matched.split()
    return f"{words[0]} \u2026 {words[-1]}" if "..." in phrase else " ".join(words)


def _blank_excluded_indicators(pattern: "re2._Regexp", text: str) -> str:
    parts, position = [], 0
    for match in pattern.finditer(text):
        start, end = match.span(1)
        parts += [text[position:start], " " * (end - start)]
        position = end
    return "".join([*parts, text[position:]])


def _drop_nested_indicators(hits: Iterable[IndicatorHit]) -> Iterator[IndicatorHit]:
    """Yield hits, sorted by start and longest first, not within a longer one of their kind."""
    furthest: dict[tuple[bool, str | None], IndicatorHit] = {}
    for hit in hits:
        kind = (hit.modality is None, hit.regulation)
        far = furthest.get(kind)
        if far is None or far.end < hit.end:
            furthest[kind] = hit
        elif (far.start, far.end) != (hit.start, hit.end):
            continue
        yield hit

"""The phrases of `config/requirements/indicators.yaml`, ready to be found in sentences.

All phrases are searched for at once by a linear-time engine, so neither the length of the list
nor a hostile document makes it slow.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import re2
from pydantic import ConfigDict, Field

from config.files import read_model
from config.loader import SHIPPED
from protocol.state import Data

LanguageCode = Literal["en", "de"]
Modality = Literal["obligation", "prohibition", "permission", "recommendation"]
_Confidence = Annotated[float, Field(gt=0, le=1)]


class _Frozen(Data):
    model_config = ConfigDict(frozen=True)


class Language(_Frozen):
    words: frozenset[str] = Field(description="Frequent words, to recognise the language by.")
    abbreviations: frozenset[str] = Field(description="After these a full stop ends nothing.")
    exclusions: list[str] = Field(description="Phrases taken out before any other is sought.")
    modality: dict[Modality, dict[str, _Confidence]] = Field(
        description="Phrases of obligation and the like, each with its confidence."
    )


class Regulation(_Frozen):
    names: list[str] = Field(description="What the regulation and its parts are called.")
    terms: list[str] = Field(description="What it is about.")


class Indicators(_Frozen):
    languages: dict[LanguageCode, Language] = Field(description="Phrases by language.")
    regulations: dict[str, Regulation] = Field(description="Phrases by regulation.")


@dataclass(frozen=True, slots=True)
class Hit:
    """A phrase found: its words as they stand, from `start` to `end` of the text."""

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


class Phrases:
    """All phrases, compiled. `data` is what they were made of."""

    def __init__(self, data: Indicators) -> None:
        self.data = data
        self.abbreviations = frozenset().union(*(x.abbreviations for x in data.languages.values()))
        self.words = frozenset().union(*(x.words for x in data.languages.values()))
        excluded = [x for language in data.languages.values() for x in language.exclusions]
        self._excluded = [re2.compile(_pattern(phrase)) for phrase in excluded]
        self._phrases = list(_phrases(data))
        self._compiled = [re2.compile(_pattern(phrase.phrase)) for phrase in self._phrases]
        self._all = re2.Set.SearchSet()
        for phrase in [*(phrase.phrase for phrase in self._phrases), *excluded]:
            self._all.Add(_sieve(phrase))
        self._all.Compile()

    def find(self, text: str) -> list[Hit]:
        """The phrases in the text by place; of phrases within one another only the longest."""
        found = sorted(self._all.Match(text) or [])
        own = len(self._phrases)
        for number in found:
            if number >= own:
                text = _blank(self._excluded[number - own], text)
        hits = [hit for number in found if number < own for hit in self._hits(number, text)]
        hits.sort(key=lambda hit: (hit.start, -hit.end))
        return list(_uncovered(hits))

    def _hits(self, number: int, text: str) -> list[Hit]:
        phrase = self._phrases[number]
        return [
            Hit(
                start=match.start(1),
                end=match.end(1),
                words=_shown(match[1], phrase.phrase),
                language=phrase.language,
                modality=phrase.modality,
                regulation=phrase.regulation,
                confidence=phrase.confidence,
            )
            for match in self._compiled[number].finditer(text)
        ]

    def language_of(self, text: str) -> LanguageCode:
        """The language with more of its frequent words in the text; English in doubt."""
        words = re.findall(r"\w+", text.lower())
        counts = {
            code: sum(word in language.words for word in words)
            for code, language in self.data.languages.items()
        }
        return max(counts, key=lambda code: (counts[code], code == "en"))


@cache
def shipped() -> Phrases:
    """The phrases of the shipped file. Raises Problem if it is malformed."""
    return Phrases(read_model(SHIPPED / "requirements" / "indicators.yaml", Indicators))


def _phrases(data: Indicators) -> list[_Phrase]:
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


_GROUPS = {"(": "(?:", ")": ")", "|": "|"}
_NOTATION = {"*": r"\pL*", "+": r"[a-zäöüß]{3,}", "...": r"\PL(?:[^;:!?]*?\PL)??", "": r"\s+"}
_SIEVE = {"*": r"\S*", "+": r"\S+", "": r"\s+"}


def _pattern(phrase: str) -> str:
    """The phrase as an expression whose first group is its words."""
    case = "" if phrase.startswith("=") else "(?i)"
    # The engine's \b knows ASCII letters only.
    return rf"{case}(?:^|[^\pL\pN_])({_body(phrase, _NOTATION)})(?:$|[^\pL\pN_])"


def _sieve(phrase: str) -> str:
    """A coarser expression that matches wherever the phrase does: its words before the first gap.

    All sieves together make one small automaton, which tells in a single pass which of the
    phrases are worth a look."""
    return f"(?i){_body(phrase.split('...', maxsplit=1)[0].rstrip(), _SIEVE)}"


def _body(phrase: str, notation: dict[str, str]) -> str:
    parts = re.split(r"(\s*\.\.\.\s*|\s+|[*+()|])", phrase.removeprefix("="))
    known = notation | _GROUPS
    return "".join(
        known[part.strip()] if part.strip() in known else re2.escape(part) for part in parts if part
    )


def _shown(found: str, phrase: str) -> str:
    words = found.split()
    return f"{words[0]} \u2026 {words[-1]}" if "..." in phrase else " ".join(words)


def _blank(pattern: "re2._Regexp", text: str) -> str:
    parts, at = [], 0
    for match in pattern.finditer(text):
        start, end = match.span(1)
        parts += [text[at:start], " " * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


def _uncovered(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Of hits by start, the longer first, those that lie within no longer one of their own kind.

    Each is held only against the one that reaches furthest, as a text may be all hits.
    """
    furthest: dict[tuple[bool, str | None], Hit] = {}
    for hit in hits:
        kind = (hit.modality is None, hit.regulation)
        far = furthest.get(kind)
        if far is None or far.end < hit.end:
            furthest[kind] = hit
        elif (far.start, far.end) != (hit.start, hit.end):
            continue
        yield hit

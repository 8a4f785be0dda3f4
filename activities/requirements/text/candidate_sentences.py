"""Find sentences that may be requirements by their language.

Recall matters more than precision: an agent reads every candidate and drops wrong ones, but may
never see a sentence that is not listed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from activities.documents.pages import Page
from activities.documents.quotes import MIN_QUOTE
from activities.requirements.text.sentences import Sentence, cut_sentence, split_sentences
from activities.text.indicators import (
    IndicatorHit,
    IndicatorMatcher,
    LanguageCode,
    Modality,
    shipped_indicators,
)

MAX_TEXT = 600
Force = Literal["must", "should", "may", "must not"]
FORCES: dict[Modality, Force] = {
    "obligation": "must",
    "prohibition": "must not",
    "recommendation": "should",
    "permission": "may",
}

_RANK: dict[Modality, int] = {
    "prohibition": 0,
    "obligation": 0,
    "recommendation": 1,
    "permission": 2,
}
_INHERITED = 0.75


class Candidate(BaseModel):
    """A sentence or list item that may be a requirement."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="C-001 and so on, in document order.")
    page: int = Field(description="The page its text stands on.")
    section: str = Field(
        "", description="Number, else title, of the section it is in, where there is one."
    )
    text: str = Field(description="Its exact words, at most 600 characters; can be cited.")
    rest: str = Field("", description="What of it stands on the next page; can be cited there.")
    language: LanguageCode = Field(description="The language it is in.")
    modality: Modality = Field(description="What kind of demand it makes.")
    indicators: list[str] = Field(description="The words it was recognised by.")
    regulation: list[str] = Field(description="Regulations it seems to speak of.")
    confidence: float = Field(description="From 0 to 1: how sure it is meant as a requirement.")
    lead: str | None = Field(
        None, description="For an item of a list: the candidate before the list, if that is one."
    )
    inherited: bool = Field(
        False, description="Whether its demand is that of its lead alone, with no word of its own."
    )

    @property
    def force(self) -> Force:
        """How strongly the statement binds, by its modality."""
        return FORCES[self.modality]

    @property
    def binds(self) -> bool:
        """Whether its own words express must, must not or should."""
        return self.modality != "permission" and not self.inherited


@dataclass(frozen=True, slots=True)
class _Demand:
    """The modality that makes a sentence a candidate; list items inherit it from their lead."""

    language: LanguageCode
    modality: Modality
    confidence: float
    words: tuple[str, ...]


def identify_candidates(pages: Iterable[Page]) -> list[Candidate]:
    """Return the document's candidates in order; the same pages always give the same result.

    A list item without its own modality inherits that of the sentence before the list, if that ends
    with a colon. Headings, code blocks and running headers are not candidates.
    """
    phrases = shipped_indicators()
    candidates: list[Candidate] = []
    inherited: _Demand | None = None
    lead: str | None = None
    for sentence in split_sentences(pages, phrases.abbreviations, phrases.words):
        hits = phrases.find(sentence.full_text)
        own_demand = demand = _candidate_sentence_demand(sentence.full_text, hits, phrases)
        begins_list = sentence.full_text.endswith(":")
        if begins_list or not sentence.is_item:
            inherited, lead = None, None
        elif own_demand is None and sentence.begins_block:
            demand = inherited
        text = cut_sentence(sentence.text, MAX_TEXT)
        if demand is not None and not sentence.is_heading and _is_candidate_sentence(text):
            candidate = _build_candidate_sentence(len(candidates) + 1, sentence, text, demand, hits)
            candidates.append(
                candidate.model_copy(update={"lead": lead, "inherited": own_demand is None})
            )
            lead = candidate.id if begins_list else lead
        if begins_list:
            inherited = _inheritable_candidate_demand(own_demand)
    return candidates


def candidate_binding_force(text: str) -> Force | None:
    """Return how strongly the words bind; None if no word binds or permits."""
    phrases = shipped_indicators()
    demand = _candidate_sentence_demand(text, phrases.find(text), phrases)
    return FORCES[demand.modality] if demand else None


def _candidate_sentence_demand(
    text: str, hits: list[IndicatorHit], phrases: IndicatorMatcher
) -> _Demand | None:
    demands = [hit for hit in hits if hit.modality is not None]
    if not demands:
        return None
    languages = {hit.language for hit in demands}
    language = phrases.language_of(text) if len(languages) > 1 else demands[0].language
    same_language = [hit for hit in demands if hit.language == language]
    chosen = min(
        same_language, key=lambda hit: (_RANK[hit.modality or "permission"], -hit.confidence)
    )
    assert language is not None and chosen.modality is not None
    return _Demand(
        language, chosen.modality, chosen.confidence, tuple(hit.words for hit in same_language)
    )


def _inheritable_candidate_demand(demand: _Demand | None) -> _Demand | None:
    # "It may contain the following:" demands nothing, and most lists in manuals begin that way.
    if demand is None or demand.modality == "permission":
        return None
    return replace(demand, confidence=demand.confidence * _INHERITED)


def _build_candidate_sentence(
    number: int, sentence: Sentence, text: str, demand: _Demand, hits: list[IndicatorHit]
) -> Candidate:
    regulations = sorted({hit.regulation for hit in hits if hit.regulation is not None})
    terms = [hit.words for hit in hits if hit.regulation is not None]
    confidence = demand.confidence + 0.04 * len(regulations)
    if sentence.full_text.endswith("?"):
        confidence -= 0.3
    if len(text.split()) < 5:
        confidence -= 0.2
    if len(text) < len(sentence.text):
        confidence -= 0.05
    return Candidate(
        id=f"C-{number:03d}",
        page=sentence.page,
        section=sentence.section,
        text=text,
        rest=cut_sentence(sentence.rest, MAX_TEXT),
        language=demand.language,
        modality=demand.modality,
        indicators=list(dict.fromkeys([*demand.words, *terms])),
        regulation=regulations,
        confidence=round(min(0.99, max(0.05, confidence)), 2),
    )


def _is_candidate_sentence(text: str) -> bool:
    letters = sum(letter.isalpha() for letter in text)
    return len(text) >= MIN_QUOTE and len(text.split()) >= 3 and letters * 2 >= len(text)

"""Find sentences that may be requirements by their language.

Recall matters more than precision: an agent reads every candidate and drops wrong ones, but may
never see a sentence that is not listed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from activities.documents.pages import Page
from activities.documents.quotes import MIN_QUOTE
from activities.requirements.text.imperatives import find_imperative
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

Form = Literal["words", "order", "item", "statement", "sampled"]
"""By what a sentence is known as a candidate: its words of obligation, an imperative, the lead-in
of its list, a statement about a named actor, or likeness to a requirement of a sample."""

_RANK: dict[Modality, int] = {
    "prohibition": 0,
    "obligation": 0,
    "recommendation": 1,
    "permission": 2,
}
_WEAK = 0.5
"""Below it a word says too little to outrank a surer one."""
_INHERITED = 0.8


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
    form: Form = Field("words", description="By what it was recognised.")
    number: str = Field("", description="What the document calls the item or section it is in.")
    lead: str | None = Field(
        None, description="For an item of a list: the candidate before the list, if that is one."
    )
    lead_in: str = Field("", description="For an item of a list: the words before the list.")
    lead_page: int = Field(0, description="The page of the lead-in.")

    @property
    def force(self) -> Force:
        return FORCES[self.modality]

    @property
    def binds(self) -> bool:
        """Whether it says must, must not or should, by itself or with its lead-in."""
        return self.modality != "permission"


@dataclass(frozen=True, slots=True)
class _Demand:
    """The modality that makes a sentence a candidate; list items inherit it from their lead."""

    language: LanguageCode
    modality: Modality
    confidence: float
    words: tuple[str, ...]
    form: Form = "words"


@dataclass(frozen=True, slots=True)
class _LeadIn:
    sentence: Sentence
    demand: _Demand | None
    candidate: str | None


def identify_candidates(pages: Iterable[Page]) -> list[Candidate]:
    """Return the document's candidates in order; the same pages always give the same result.

    A list item is judged with the sentence before the list. Headings, code blocks and running
    headers are not candidates.
    """
    phrases = shipped_indicators()
    sentences = split_sentences(pages, phrases.abbreviations, phrases.words)
    candidates: list[Candidate] = []
    leads: dict[int, _LeadIn] = {}
    """By the level of the list's items."""
    for sentence, after in zip_longest(sentences, sentences[1:]):
        if sentence.begins_block:
            leads = {level: lead for level, lead in leads.items() if level <= sentence.level}
            if not sentence.is_item:
                leads.pop(sentence.level, None)
        lead = leads.get(sentence.level) if sentence.is_item and sentence.begins_block else None
        hits = phrases.find(sentence.full_text)
        demand = _candidate_sentence_demand(sentence, hits, phrases)
        if demand is None and lead:
            demand = _demand_with_lead_in(sentence, lead, phrases)
        text = cut_sentence(sentence.text, MAX_TEXT)
        named = None
        if demand is not None and not sentence.is_heading and _is_candidate_sentence(text, demand):
            candidate = _build_candidate_sentence(len(candidates) + 1, sentence, text, demand, hits)
            candidates.append(_with_lead_in(candidate, lead))
            named = candidate.id
        if _introduces_list(sentence, after):
            below = after.level if after and after.is_item else 0
            leads[max(sentence.level + 1, below)] = _LeadIn(sentence, demand, named)
    return candidates


def _introduces_list(sentence: Sentence, after: Sentence | None) -> bool:
    """Whether a list follows: after a colon, or in the middle of a sentence."""
    if sentence.is_heading:
        return False
    if sentence.full_text.endswith(":"):
        return True
    return (
        after is not None
        and after.is_item
        and after.begins_block
        and after.level > sentence.level
        and not sentence.column
        and sentence.full_text[-1] not in ".!?;"
    )


def _demand_with_lead_in(
    sentence: Sentence, lead: _LeadIn, phrases: IndicatorMatcher
) -> _Demand | None:
    """Return what an item demands with the words before its list; None if it demands nothing.

    "It may contain the following:" demands nothing, and most lists in manuals begin that way.
    """
    demand = lead.demand
    if demand is None:
        joint = f"{lead.sentence.full_text[-MAX_TEXT:].rstrip(':')} {sentence.full_text}"
        demand = _demand_of_words(joint, phrases.find(joint), phrases)
    if demand is None or demand.modality == "permission":
        return None
    share = 1 if demand.form == "item" else _INHERITED
    return replace(demand, confidence=demand.confidence * share, form="item")


def _with_lead_in(candidate: Candidate, lead: _LeadIn | None) -> Candidate:
    if lead is None:
        return candidate
    return candidate.model_copy(
        update={
            "lead": lead.candidate,
            "lead_in": cut_sentence(lead.sentence.text, MAX_TEXT),
            "lead_page": lead.sentence.page,
        }
    )


def candidate_binding_force(text: str) -> Force | None:
    """Return how strongly the words bind; None if no word binds or permits."""
    phrases = shipped_indicators()
    demand = _demand_of_words(text, phrases.find(text), phrases)
    return FORCES[demand.modality] if demand else None


def _candidate_sentence_demand(
    sentence: Sentence, hits: list[IndicatorHit], phrases: IndicatorMatcher
) -> _Demand | None:
    demand = _demand_of_words(sentence.full_text, hits, phrases)
    if demand and demand.modality != "permission" and demand.confidence >= _WEAK:
        return demand
    order = (
        None if sentence.is_heading else find_imperative(sentence.full_text, item=sentence.is_item)
    )
    if order is None or (demand and demand.modality != "permission" and order.confidence < _WEAK):
        return demand
    return _Demand(order.language, order.modality, order.confidence, (order.words,), "order")


def _demand_of_words(
    text: str, hits: list[IndicatorHit], phrases: IndicatorMatcher
) -> _Demand | None:
    demands = [hit for hit in hits if hit.modality is not None]
    if not demands:
        return None
    languages = {hit.language for hit in demands}
    language = phrases.language_of(text) if len(languages) > 1 else demands[0].language
    same_language = [hit for hit in demands if hit.language == language]
    chosen = min(
        same_language,
        key=lambda hit: (
            hit.confidence < _WEAK,
            _RANK[hit.modality or "permission"],
            -hit.confidence,
        ),
    )
    assert language is not None and chosen.modality is not None
    return _Demand(
        language, chosen.modality, chosen.confidence, tuple(hit.words for hit in same_language)
    )


def _build_candidate_sentence(
    number: int, sentence: Sentence, text: str, demand: _Demand, hits: list[IndicatorHit]
) -> Candidate:
    regulations = sorted({hit.regulation for hit in hits if hit.regulation is not None})
    terms = [hit.words for hit in hits if hit.regulation is not None]
    confidence = demand.confidence + 0.04 * len(regulations)
    if sentence.full_text.endswith("?"):
        confidence -= 0.3
    if len(text.split()) < 5 and demand.form == "words":
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
        form=demand.form,
        number=sentence.source_id,
    )


def _is_candidate_sentence(text: str, demand: _Demand) -> bool:
    letters = sum(letter.isalpha() for letter in text)
    least = 1 if demand.form == "item" else 3
    return len(text) >= MIN_QUOTE and len(text.split()) >= least and letters * 2 >= len(text)

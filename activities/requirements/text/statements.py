"""Sentences and candidates of a document, cached in the process."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from activities.checkpoints.journal import Cache
from activities.documents.pages import Page
from activities.documents.quotes import FoldedPage
from activities.requirements.text.candidate_sentences import Candidate, identify_candidates
from activities.requirements.text.numbering import NumberClass, find_number_classes
from activities.requirements.text.sentences import Sentence, split_sentences
from activities.text.indicators import shipped_indicators

MAX_CACHED_SENTENCES = 50_000
"""Limit for all documents together; about thirty megabytes."""


@dataclass(frozen=True)
class DocumentStatements:
    candidates: tuple[Candidate, ...]
    sentences: dict[int, list[Sentence]]
    """By page number."""
    number_classes: tuple[NumberClass, ...] = ()

    @property
    def in_order(self) -> list[Sentence]:
        return [sentence for of_page in self.sentences.values() for sentence in of_page]

    def source_id_of_passage(self, page: Page, passage: str) -> str:
        """Return what the document calls the item of a passage; empty if it has no number."""
        sentence = self._sentence_of_passage(page, passage)
        return sentence.source_id if sentence else ""

    def section_of_passage(self, page: Page, passage: str) -> str:
        """Return the section of a passage on the page; empty if the document names none."""
        sentence = self._sentence_of_passage(page, passage)
        if sentence:
            return sentence.section
        sentences = self.sentences.get(page.number, [])
        return sentences[0].section if sentences else ""

    def _sentence_of_passage(self, page: Page, passage: str) -> Sentence | None:
        """Return the sentence that has most of the passage: a short heading may stand in others."""
        folded = FoldedPage(page.text)
        places = folded.find_spans(passage)
        best, most = None, 0
        for sentence in self.sentences.get(page.number, []) if places else []:
            for span in folded.find_spans(sentence.text):
                shared = min(span.end, places[0].end) - max(span.start, places[0].start)
                if shared > most and span.touches(places[0]):
                    best, most = sentence, shared
        return best


_cache: Cache[str, DocumentStatements] = Cache(
    MAX_CACHED_SENTENCES, lambda statements: sum(map(len, statements.sentences.values()))
)


def statements_of(pages: Sequence[Page]) -> DocumentStatements:
    """Return the sentences and candidates of these pages, leaving out unread pages."""
    readable = [page for page in pages if not page.unread]
    digest = hashlib.sha1(usedforsecurity=False)
    for page in readable:
        digest.update(f"{page.number}\n{page.sections}\n{page.text}\0".encode(errors="replace"))
    key = digest.hexdigest()
    if (known := _cache.get(key)) is not None:
        return known
    phrases = shipped_indicators()
    by_page: dict[int, list[Sentence]] = {}
    for sentence in split_sentences(readable, phrases.abbreviations, phrases.words):
        by_page.setdefault(sentence.page, []).append(sentence)
    classes = find_number_classes(each for of_page in by_page.values() for each in of_page)
    return _cache.put(
        key, DocumentStatements(tuple(identify_candidates(readable)), by_page, tuple(classes))
    )


def lead_ins_of_passage(pages: Sequence[Page], number: int, passage: str) -> list[str]:
    """Return the sentences before the lists of which the passage is an item."""
    statements = statements_of(pages)
    page = next((each for each in pages if each.number == number), None)
    items = [each for each in statements.candidates if each.page == number and each.lead_in]
    if page is None or not items:
        return []
    folded = FoldedPage(page.text)
    spans = folded.find_spans(passage)
    named = {each.id: each for each in statements.candidates}
    leads: dict[str, None] = {}
    for item in items:
        if any(covered.touches(span) for covered in folded.find_spans(item.text) for span in spans):
            above: Candidate | None = item
            while above is not None and above.lead_in and above.lead_in not in leads:
                leads[above.lead_in] = None
                above = named.get(above.lead or "")
    return list(leads)

"""Sentences and candidates of a document, cached in the process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from activities.checkpoints.object_cache import Cache
from activities.documents import FoldedPage, Page
from activities.requirements.text.candidate_sentences import Candidate, identify_candidates
from activities.requirements.text.sentences import Sentence, split_sentences
from activities.text.indicators import shipped_indicators

MAX_CACHED_SENTENCES = 50_000
"""Limit for all documents together; about thirty megabytes."""


@dataclass(frozen=True)
class DocumentStatements:
    """Sentences and candidates of a document."""

    candidates: tuple[Candidate, ...]
    sentences: dict[int, list[Sentence]]
    """By page number."""

    def section_of_passage(self, page: Page, passage: str) -> str:
        """Return the section of a passage on the page; empty if the document names none."""
        sentences = self.sentences.get(page.number, [])
        folded = FoldedPage(page.text)
        for place in folded.find_spans(passage):
            for sentence in sentences:
                if any(span.touches(place) for span in folded.find_spans(sentence.text)):
                    return sentence.section
        return sentences[0].section if sentences else ""


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
    return _cache.put(key, DocumentStatements(tuple(identify_candidates(readable)), by_page))

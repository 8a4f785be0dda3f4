"""Whether the requirements of a workspace cover the binding sentences of its documents.

A sentence with must, must not or should is covered once a citation touches it on its page, or a
rule sets it aside. Candidates are identified anew in the text, since agents may edit the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from activities.documents import FoldedPage, Page
from activities.requirements.requirement import Requirement
from activities.requirements.set_aside_rules import SetAsideRule
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.statements import statements_of


@dataclass(frozen=True)
class Coverage:
    """Coverage of the binding sentences of all documents."""

    total: int = 0
    cited: int = 0
    set_aside: dict[int, int] = field(default_factory=dict)
    """Number of sentences that each rule sets aside, by the rule's index."""
    uncovered: list[tuple[str, Candidate]] = field(default_factory=list)
    """Document and sentence of each uncovered one."""
    weaker_uncovered: int = 0
    """Number of uncited other candidates: permissions and list items."""


def measure_coverage(
    documents: Mapping[str, Sequence[Page]],
    requirements: Iterable[Requirement],
    rules: Sequence[SetAsideRule],
    heartbeat: Callable[[], None],
) -> Coverage:
    """Compare citations and rules with the text of the documents."""
    quotes: dict[tuple[str, int], list[str]] = {}
    for citation in (each for requirement in requirements for each in requirement.citations):
        quotes.setdefault((citation.document, citation.page), []).append(citation.quote)
    total = cited = weaker = 0
    aside: dict[int, int] = {}
    uncovered: list[tuple[str, Candidate]] = []
    for document, pages in documents.items():
        heartbeat()
        candidates = statements_of(pages).candidates
        touched = _covered_candidates(document, pages, candidates, quotes)
        leads = {each.lead for each in candidates if each.id in touched}
        for each in candidates:
            if not each.binds:
                weaker += each.id not in touched
                continue
            total += 1
            rule = next(
                (n for n, rule in enumerate(rules) if rule.sets_aside(document, each)), None
            )
            # A sentence that introduces a list is covered once one of its items is cited.
            if each.id in touched or each.id in leads:
                cited += 1
            elif rule is not None:
                aside[rule] = aside.get(rule, 0) + 1
            else:
                uncovered.append((document, each))
    return Coverage(total, cited, aside, uncovered, weaker)


def _covered_candidates(
    document: str,
    pages: Sequence[Page],
    candidates: Iterable[Candidate],
    quotes: Mapping[tuple[str, int], list[str]],
) -> set[str]:
    """Return ids of the candidates that a citation touches."""
    by_page: dict[int, list[Candidate]] = {}
    for each in candidates:
        by_page.setdefault(each.page, []).append(each)
    touched: set[str] = set()
    for page in pages:
        page_quotes = quotes.get((document, page.number))
        if not page_quotes or page.number not in by_page:
            continue
        folded = FoldedPage(page.text)
        spans = [span for quote in set(page_quotes) for span in folded.find_spans(quote)]
        touched.update(
            each.id
            for each in by_page[page.number]
            if any(a.touches(b) for a in folded.find_spans(each.text) for b in spans)
        )
    return touched

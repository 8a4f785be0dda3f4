"""What the quotes of requirements touch of a document, and which of it the requirements say."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from activities.documents.quotes import FoldedPage, Span
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement import Requirement
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.carried import carried_passages, says_something
from activities.requirements.versions import KeptRequirement

LIST_ITEMS = 10
"""Items of a list that count as one sentence with the words before it."""
Quotes = Mapping[tuple[str, int], Mapping[str, Set[str]]]
"""By document and page: each quote, with the statements of the requirements that have it."""


class Touch(NamedTuple):
    """A place of a quote that touches a passage."""

    page: int
    span: Span
    quote: str


def quotes_by_page(requirements: Iterable[Requirement | KeptRequirement]) -> Quotes:
    quotes: dict[tuple[str, int], dict[str, set[str]]] = {}
    for requirement in requirements:
        for each in requirement.citations:
            of_page = quotes.setdefault((each.document, each.page), {})
            of_page.setdefault(each.quote, set()).add(requirement.text)
    return quotes


def cited_candidates(view: DocumentView, quotes: Quotes) -> tuple[set[str], set[str]]:
    """Return the ids of the candidates that are cited, and of those that a quote touches.

    A sentence that introduces a list is cited once one of its items is.
    """
    candidates = view.candidates
    touched = touched_passages(view, [(each.page, each.text) for each in candidates], quotes)
    reached = {each.id for each, at in zip(candidates, touched, strict=True) if at}
    binding = [(c, at) for c, at in zip(candidates, touched, strict=True) if c.binds]
    lead_of = {each.id: each.lead for each in candidates}
    cited = carried_ids(view, binding, quotes)
    for id in list(cited):
        lead = lead_of.get(id)
        while lead and lead not in cited:
            cited.add(lead)
            lead = lead_of.get(lead)
    return cited, reached


def carried_ids(
    view: DocumentView, touched: Iterable[tuple[Candidate, list[Touch]]], quotes: Quotes
) -> set[str]:
    """Return the ids of the sentences that requirements cover whose quotes touch them.

    Within a numbered entry the number is what counts, and a quote has one.
    """
    groups: dict[str, dict[str, Candidate]] = {}
    carried = set()
    for sentence, touches in touched:
        if touches and view.is_in_entry(sentence.page, sentence.text):
            carried.add(sentence.id)
            continue
        for touch in touches:
            for statement in quotes[view.path, touch.page][touch.quote]:
                groups.setdefault(statement, {})[sentence.id] = sentence
    for statement, group in groups.items():
        leads = {each.lead for each in group.values()}
        ids: dict[str, list[str]] = {}
        texts: dict[str, str] = {}
        for id, sentence in group.items():
            if id not in leads:  # a sentence before a list is cited with its items
                whole, lead_in = sentence.text, sentence.lead_in
                is_item = sentence.form == "item" or (sentence.form == "order" and sentence.lead)
                if is_item and says_something(lead_in) and len(ids.get(lead_in, ())) < LIST_ITEMS:
                    whole = lead_in
                ids.setdefault(whole, []).append(id)
                texts[whole] = f"{texts.get(whole, lead_in)} {sentence.text}"
        carried |= {id for whole in carried_passages(statement, texts) for id in ids[whole]}
    return carried


def touched_passages(
    view: DocumentView, passages: Sequence[tuple[int, str]], quotes: Quotes
) -> list[list[Touch]]:
    """Return for each passage the quotes that touch it."""
    by_page: dict[int, list[int]] = {}
    for place, (number, _) in enumerate(passages):
        by_page.setdefault(number, []).append(place)
    touched: list[list[Touch]] = [[] for _ in passages]
    for page in view.pages:
        page_quotes = quotes.get((view.path, page.number))
        if not page_quotes or page.number not in by_page:
            continue
        folded = FoldedPage(page.text)
        places = [
            Touch(page.number, span, quote)
            for quote in page_quotes
            for span in folded.find_spans(quote)
        ]
        for number in by_page[page.number]:
            own_spans = folded.find_spans(passages[number][1])
            touched[number] = [
                place for place in places if any(own.touches(place.span) for own in own_spans)
            ]
    return touched

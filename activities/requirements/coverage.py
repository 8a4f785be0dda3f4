"""Whether the requirements of a workspace cover its documents, and what "complete" rests on.

Three things are counted for each document: its own numbers, where it numbers its requirements; its
binding sentences; and a sample of the sentences that nothing cites. All is found anew in the
text, since agents may edit the list of candidates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from activities.documents.quotes import FoldedPage, Span
from activities.requirements.completeness import DocumentDecisions
from activities.requirements.document_view import LEAST_WORDS, DocumentView, sentence_as_candidate
from activities.requirements.requirement import Requirement, normalized_words
from activities.requirements.set_aside_rules import Passage, SetAsideRule
from activities.requirements.text.candidate_sentences import MAX_TEXT, Candidate
from activities.requirements.text.numbering import NumberClass, NumberedEntry
from activities.requirements.text.sentences import cut_sentence
from activities.requirements.versions import KeptRequirement

Quotes = Mapping[tuple[str, int], Sequence[str]]
"""Quotes by document and page."""
_PageSpan = tuple[int, Span]


@dataclass(frozen=True)
class NumberCoverage:
    """How many entries of a numbering class are cited or set aside."""

    numbers: NumberClass
    cited: int
    set_aside: int
    open: list[NumberedEntry]


@dataclass(frozen=True)
class DocumentCoverage:
    """The ground on which a document is complete, or what is open of it."""

    path: str
    binding: int
    cited: int
    set_aside: int
    uncovered: list[Candidate]
    numbers: list[NumberCoverage]
    undecided: list[NumberClass]
    decisions: DocumentDecisions
    limit: float
    """Share of untouched sentences that may be missed."""
    out_of_scope: bool
    untouched: int
    """Number of sentences that nothing cites, as long as no sample was drawn; else 0."""

    @property
    def sample_fault(self) -> str:
        """Why the sample does not show the document to be complete; empty if it does."""
        rounds = self.decisions.rounds
        if self.out_of_scope:
            return ""
        if not rounds and not self.untouched:
            return ""
        if not rounds:
            return (
                "no sample was drawn of the sentences that nothing cites; "
                "collect_requirements draws it, judge_sample says what it shows"
            )
        if rounds[-1].unread:
            return f"{len(rounds[-1].unread):,} sampled sentences wait for judge_sample"
        if rounds[-1].hits:
            return "the last sample showed requirements; collect_requirements draws anew"
        if self.decisions.bound > self.limit:
            return f"{self.sample}, and {_percent(self.limit)} may be missed"
        return ""

    @property
    def sample(self) -> str:
        """What the last sample says."""
        if not self.decisions.rounds:
            return (
                f"of {self.untouched:,} sentences that nothing cites none was read"
                if self.untouched
                else "nothing else stands in it"
            )
        last = self.decisions.rounds[-1]
        read = len(last.drawn) - len(last.unread)
        of = f"of {last.population:,} sentences that nothing cites {read:,} were read"
        if not last.population:
            return "nothing else stands in it"
        if not read:
            return f"{of} so far, and {len(last.unread):,} wait for judge_sample"
        if read == last.population and not last.hits:
            if read == 1:
                return "the one sentence that nothing cites was read: it is no requirement"
            return f"all {read:,} sentences that nothing cites were read: none is a requirement"
        if last.hits:
            return f"{of}, {len(last.hits):,} of them requirements"
        recall = self.found_count / max(1, self.found_count + self.decisions.missed)
        return (
            f"{of}: at most {_percent(self.decisions.bound)} are requirements, so at least "
            f"{int(recall * 100)} % of them are found (confidence 95 %)"
        )

    @property
    def found_count(self) -> int:
        """How many passages with requirements are cited."""
        return max(self.cited, sum(each.cited for each in self.numbers))

    @property
    def statement(self) -> str:
        """What is complete and on which ground, as a sentence without its full stop."""
        if self.out_of_scope:
            return f"{self.path}: set aside as a whole"
        parts = [
            f"numbers {each.cited + each.set_aside:,} of {len(each.numbers.entries):,} "
            f"({each.numbers.name}; {each.cited:,} cited, {each.set_aside:,} set aside)"
            for each in self.numbers
        ]
        parts.append(
            f"binding sentences {self.cited + self.set_aside:,} of {self.binding:,} "
            f"({self.cited:,} cited, {self.set_aside:,} set aside)"
        )
        parts.append(self.sample)
        open_ = bool(self.uncovered or self.undecided or self.sample_fault) or any(
            each.open for each in self.numbers
        )
        return f"{self.path} is {'not complete' if open_ else 'complete'}: {'; '.join(parts)}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %".replace(".0 %", " %")


@dataclass(frozen=True)
class Coverage:
    documents: list[DocumentCoverage] = field(default_factory=list)
    set_aside: dict[int, int] = field(default_factory=dict)
    """Number of sentences and numbers that each rule sets aside, by the rule's index."""
    weaker_uncovered: int = 0
    """Number of uncited permissions."""

    @property
    def total(self) -> int:
        """Number of binding sentences."""
        return sum(each.binding for each in self.documents)

    @property
    def cited(self) -> int:
        return sum(each.cited for each in self.documents)

    @property
    def uncovered(self) -> list[tuple[str, Candidate]]:
        """Document and sentence of each uncovered one."""
        return [(each.path, sentence) for each in self.documents for sentence in each.uncovered]

    @property
    def open_entries(self) -> list[tuple[str, NumberedEntry]]:
        """Document and entry of each number that is neither cited nor set aside."""
        return [
            (each.path, entry)
            for each in self.documents
            for numbers in each.numbers
            for entry in numbers.open
        ]


def measure_coverage(
    views: Sequence[DocumentView],
    requirements: Iterable[Requirement | KeptRequirement],
    rules: Sequence[SetAsideRule],
) -> Coverage:
    """Compare citations and rules with the text of the documents."""
    quotes = quotes_by_page(requirements)
    aside: dict[int, int] = {}
    documents = []
    weaker = 0

    refuted: Set[int] = frozenset()

    def rule_for(document: str, passage: Passage) -> bool:
        applies = (n for n, rule in enumerate(rules) if rule.sets_aside(document, passage))
        rule = next((n for n in applies if n not in refuted), None)
        if rule is not None:
            aside[rule] = aside.get(rule, 0) + 1
        return rule is not None

    for view in views:
        candidates = view.candidates
        refuted = refuted_rules(view, rules)
        cited, reached = _cited_candidates(view, quotes)
        binding = [each for each in candidates if each.binds]
        weaker += sum(not each.binds and each.id not in reached for each in candidates)
        uncited = [each for each in binding if each.id not in cited]
        uncovered = [each for each in uncited if not rule_for(view.path, each)]
        decided = [(each, view.are_requirements(each)) for each in view.statements.number_classes]
        out_of_scope = any(
            rule.document == view.path and rule.takes_whole_document for rule in rules
        )
        documents.append(
            DocumentCoverage(
                path=view.path,
                binding=len(binding),
                cited=len(binding) - len(uncited),
                set_aside=len(uncited) - len(uncovered),
                uncovered=uncovered,
                numbers=[
                    _cover_numbers(view, each, quotes, rule_for) for each, yes in decided if yes
                ],
                undecided=[each for each, yes in decided if yes is None and not out_of_scope],
                decisions=view.decisions,
                limit=view.settings.may_be_missed,
                out_of_scope=out_of_scope,
                untouched=0
                if view.decisions.rounds
                else len(untouched_sentences(view, quotes, rules)),
            )
        )
    return Coverage(documents, aside, weaker)


def refuted_rules(view: DocumentView, rules: Sequence[SetAsideRule]) -> set[int]:
    """Return the rules that set aside what a sample showed to be one, and those like them."""
    hits = {(each.page, cut_sentence(each.text, MAX_TEXT)) for each in view.decisions.hits}
    if not hits:
        return set()
    shown = [each for each in view.candidates if each.binds and (each.page, each.text) in hits]
    wrong = {
        normalized_words(rule.reason)
        for rule in rules
        if not rule.takes_places and any(rule.sets_aside(view.path, each) for each in shown)
    }
    return {
        number
        for number, rule in enumerate(rules)
        if not rule.takes_places and normalized_words(rule.reason) in wrong
    }


def covered_candidates(
    view: DocumentView, requirements: Iterable[Requirement | KeptRequirement]
) -> set[str]:
    """Return the ids of the candidates that these requirements cite."""
    return _cited_candidates(view, quotes_by_page(requirements))[0]


def _cited_candidates(view: DocumentView, quotes: Quotes) -> tuple[set[str], set[str]]:
    """Return the ids of the candidates that are cited, and of those that a quote touches.

    A sentence that introduces a list is cited once one of its items is.
    """
    candidates = view.candidates
    touched = _touched_passages(view, [(each.page, each.text) for each in candidates], quotes)
    reached = {each.id for each, at in zip(candidates, touched, strict=True) if at}
    lead_of = {each.id: each.lead for each in candidates}
    cited = set(reached)
    for id in reached:
        lead = lead_of.get(id)
        while lead and lead not in cited:
            cited.add(lead)
            lead = lead_of.get(lead)
    return cited, reached


def untouched_sentences(
    view: DocumentView, quotes: Quotes, rules: Sequence[SetAsideRule]
) -> list[tuple[int, str]]:
    """Return page and text of each sentence that nothing cites, and that binds by no word.

    Binding ones are among them if a rule sets several aside by their words: what is done in bulk is
    judged by a sample.
    """
    candidates = view.candidates
    by_reason: dict[str, set[str]] = {}
    for rule in rules:
        if not (rule.takes_places or rule.covered_by):
            aside = {each.id for each in candidates if rule.sets_aside(view.path, each)}
            by_reason.setdefault(normalized_words(rule.reason), set()).update(aside)
    in_bulk = {id for aside in by_reason.values() if len(aside) > 1 for id in aside}
    binding = {
        (each.page, each.text) for each in candidates if each.binds and each.id not in in_bulk
    }
    read = {
        (each.page, each.text)
        for each_round in view.decisions.rounds
        for each in each_round.drawn
        if each.is_requirement is False
    }
    places = [rule for rule in rules if rule.takes_places]
    sentences = [
        each
        for each in view.statements.in_order
        if not each.is_heading
        and len(each.text.split()) >= LEAST_WORDS
        and any(map(str.isalpha, each.text))
        and (each.page, cut_sentence(each.text, MAX_TEXT)) not in binding
        and (each.page, each.text) not in read
        and not any(
            rule.sets_aside(view.path, sentence_as_candidate(0, each, each.text, "sampled"))
            for rule in places
        )
    ]
    once = list(dict.fromkeys((each.page, each.text) for each in sentences))
    return [
        each for each, at in zip(once, _touched_passages(view, once, quotes), strict=True) if not at
    ]


def quotes_by_page(requirements: Iterable[Requirement | KeptRequirement]) -> Quotes:
    quotes: dict[tuple[str, int], list[str]] = {}
    for citation in (each for requirement in requirements for each in requirement.citations):
        quotes.setdefault((citation.document, citation.page), []).append(citation.quote)
    return quotes


def _cover_numbers(
    view: DocumentView,
    numbers: NumberClass,
    quotes: Quotes,
    sets_aside: Callable[[str, Passage], bool],
) -> NumberCoverage:
    """Count the entries that are cited; of several in one quote only the first one is."""
    passages = [(entry.page, text) for entry in numbers.entries for text in entry.passages]
    owners = [entry.id for entry in numbers.entries for _ in entry.passages]
    touched = _touched_passages(view, passages, quotes)
    first_of: dict[_PageSpan, str] = {}
    for owner, spans in zip(owners, touched, strict=True):
        for span in spans:
            first_of.setdefault(span, owner)
    cited = set(first_of.values())
    uncited = [entry for entry in numbers.entries if entry.id not in cited]
    open_ = [entry for entry in uncited if not sets_aside(view.path, entry)]
    return NumberCoverage(
        numbers, len(numbers.entries) - len(uncited), len(uncited) - len(open_), open_
    )


def _touched_passages(
    view: DocumentView, passages: Sequence[tuple[int, str]], quotes: Quotes
) -> list[list[_PageSpan]]:
    """Return for each passage the quotes that touch it."""
    by_page: dict[int, list[int]] = {}
    for place, (number, _) in enumerate(passages):
        by_page.setdefault(number, []).append(place)
    touched: list[list[_PageSpan]] = [[] for _ in passages]
    for page in view.pages:
        page_quotes = quotes.get((view.path, page.number))
        if not page_quotes or page.number not in by_page:
            continue
        folded = FoldedPage(page.text)
        spans = [span for quote in set(page_quotes) for span in folded.find_spans(quote)]
        for place in by_page[page.number]:
            own_spans = folded.find_spans(passages[place][1])
            touched[place] = [
                (page.number, span)
                for span in spans
                if any(each.touches(span) for each in own_spans)
            ]
    return touched

"""Whether the requirements of a workspace cover its documents, and what "complete" rests on.

Three things are counted for each document: its own numbers, where it numbers its requirements; its
binding sentences; and a sample of the sentences that nothing cites. A requirement cites the
sentences that it quotes, but no more of them than its statement has parts. All is found anew in the
text, since agents may edit the list of candidates.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from activities.requirements.completeness import DocumentDecisions
from activities.requirements.document_view import LEAST_WORDS, DocumentView, sentence_as_candidate
from activities.requirements.quoted_sentences import (
    Quotes,
    Touch,
    carried_ids,
    cited_candidates,
    quotes_by_page,
    touched_passages,
)
from activities.requirements.requirement import Requirement, normalized_words
from activities.requirements.set_aside_rules import Passage, SetAsideRule
from activities.requirements.text.candidate_sentences import MAX_TEXT, Candidate
from activities.requirements.text.carried import carried_passages, repeats_sentence
from activities.requirements.text.numbering import NumberClass, NumberedEntry
from activities.requirements.text.sentences import cut_sentence
from activities.requirements.versions import KeptRequirement


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
    unsaid: int
    """Number of these that requirements quote, beyond what their statements can say."""
    numbers: list[NumberCoverage]
    undecided: list[NumberClass]
    decisions: DocumentDecisions
    limit: float
    """Share of untouched sentences that may be missed."""
    out_of_scope: bool
    """Set aside as a whole, with nothing of it cited."""
    has_requirements: bool
    is_mostly_aside: bool
    """Whether more of what binds was set aside than is cited."""
    untouched: int
    """Number of sentences that nothing cites and nobody has read."""
    is_outgrown: bool
    """Whether many more sentences are left out than when the sample was drawn."""

    @property
    def sample_fault(self) -> str:
        """Why the sample does not show the document to be complete; empty if it does."""
        rounds = self.decisions.rounds
        if self.out_of_scope:
            return "set aside as a whole, and no requirement is from it"
        if not rounds and not self.untouched:
            return self._nothing_found
        if not rounds:
            return (
                "no sample was drawn of the sentences that nothing cites; "
                "collect_requirements draws it, judge_sample says what it shows"
            )
        if rounds[-1].unread:
            return f"{len(rounds[-1].unread):,} sampled sentences wait for judge_sample"
        if rounds[-1].hits:
            return "the last sample showed requirements; collect_requirements draws anew"
        if self.is_outgrown:
            return (
                "more was set aside, or is no longer cited, since the sample was drawn; "
                "collect_requirements draws anew"
            )
        if self.decisions.bound > self.limit:
            return f"{self.sample}, and {_percent(self.limit)} may be missed"
        return self._nothing_found

    @property
    def _nothing_found(self) -> str:
        return "" if self.found_count else "no requirement is from it"

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
        recall = int(100 * self.found_count / max(1, self.found_count + self.decisions.missed))
        found = f", so at least {recall} % of them are found" if recall else ""
        return (
            f"{of}: at most {_percent(self.decisions.bound)} are requirements{found} "
            "(confidence 95 %)"
        )

    @property
    def found_count(self) -> int:
        """How many passages with requirements are cited."""
        numbers = sum(each.cited for each in self.numbers)
        return max(self.cited, numbers, int(self.has_requirements))

    @property
    def statement(self) -> str:
        """What is complete and on which ground, as a sentence without its full stop."""
        if self.out_of_scope:
            return f"{self.path}: {self.sample_fault}"
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
        parts += [self._nothing_found] if self._nothing_found else []
        open_ = bool(self.uncovered or self.undecided or self.sample_fault) or any(
            each.open for each in self.numbers
        )
        found = (
            "for a person to confirm, since more that binds is set aside than cited"
            if self.is_mostly_aside
            else "complete"
        )
        return f"{self.path} is {'not complete' if open_ else found}: {'; '.join(parts)}"


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
    def unsaid(self) -> str:
        """How many uncovered sentences are quoted all the same, as a sentence, or empty."""
        count = sum(each.unsaid for each in self.documents)
        said = f"{count:,} of them stand in quotes of requirements that say less"
        return f"{said}: give each a requirement of its own." if count else ""

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
    requirements = list(requirements)
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
        cited, reached = cited_candidates(view, quotes)
        binding = [each for each in candidates if each.binds]
        weaker += sum(not each.binds and each.id not in reached for each in candidates)
        uncited = [each for each in binding if each.id not in cited]
        uncovered = [each for each in uncited if not rule_for(view.path, each)]
        decided = [(each, view.are_requirements(each)) for each in view.statements.number_classes]
        numbers = [_cover_numbers(view, each, quotes, rule_for) for each, yes in decided if yes]
        found = max(len(binding) - len(uncited), sum(each.cited for each in numbers))
        aside_count = max(
            _surely_binding_aside(view, cited, requirements, rules),
            sum(each.set_aside for each in numbers),
        )
        has_requirements = any(document == view.path for document, _ in quotes)
        out_of_scope = not has_requirements and any(
            rule.document == view.path and rule.takes_whole_document for rule in rules
        )
        untouched = untouched_sentences(view, requirements, rules)
        documents.append(
            DocumentCoverage(
                path=view.path,
                binding=len(binding),
                cited=len(binding) - len(uncited),
                set_aside=len(uncited) - len(uncovered),
                uncovered=uncovered,
                unsaid=sum(each.id in reached for each in uncovered),
                numbers=numbers,
                undecided=[each for each, yes in decided if yes is None and not out_of_scope],
                decisions=view.decisions,
                limit=view.settings.may_be_missed,
                out_of_scope=out_of_scope,
                has_requirements=has_requirements,
                is_mostly_aside=aside_count > found,
                untouched=len(untouched),
                is_outgrown=view.decisions.is_outgrown(untouched, view.settings.may_be_missed),
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
        if any(rule.sets_aside(view.path, each) for each in shown)
    }
    return {number for number, rule in enumerate(rules) if normalized_words(rule.reason) in wrong}


def covered_candidates(
    view: DocumentView, requirements: Iterable[Requirement | KeptRequirement]
) -> set[str]:
    """Return the ids of the candidates that these requirements cite."""
    return cited_candidates(view, quotes_by_page(requirements))[0]


def untouched_sentences(
    view: DocumentView,
    requirements: Iterable[Requirement | KeptRequirement],
    rules: Sequence[SetAsideRule],
) -> list[tuple[int, str]]:
    """Return page and text of each sentence that nothing cites, and that binds by no word.

    Binding ones are among them if rules set several aside, unless the requirement that covers
    them repeats them: what is left out is judged by a sample, whatever it was left out by.
    """
    requirements = list(requirements)
    quotes = quotes_by_page(requirements)
    cited, _ = cited_candidates(view, quotes)
    aside = _judged_aside(view, cited, requirements, rules)
    left_out = {each.id for each in aside} if len(aside) > 1 else set[str]()
    binding = {
        (each.page, each.text) for each in view.candidates if each.binds and each.id not in left_out
    }
    read = {
        (each.page, each.text)
        for each_round in view.decisions.rounds
        for each in each_round.drawn
        if each.is_requirement is False
    }
    sentences = {
        (each.page, each.text): each
        for each in view.statements.in_order
        if not each.is_heading
        and len(each.text.split()) >= LEAST_WORDS
        and any(map(str.isalpha, each.text))
        and (each.page, cut_sentence(each.text, MAX_TEXT)) not in binding
        and (each.page, each.text) not in read
    }
    touched = [
        (sentence_as_candidate(number, sentence, sentence.text, "sampled"), touches)
        for number, (sentence, touches) in enumerate(
            zip(
                sentences.values(),
                touched_passages(view, list(sentences), quotes),
                strict=True,
            )
        )
        if touches
    ]
    carried = carried_ids(view, touched, quotes)
    said_too = {(each.page, each.text) for each, _ in touched if each.id in carried}
    return [each for each in sentences if each not in said_too]


def _judged_aside(
    view: DocumentView,
    cited: Set[str],
    requirements: Iterable[Requirement | KeptRequirement],
    rules: Sequence[SetAsideRule],
) -> list[Candidate]:
    """Return the binding sentences that rules set aside, and no requirement repeats."""
    said = {each.id: each.text for each in requirements if isinstance(each, Requirement)}
    return [
        each
        for each in view.candidates
        if each.binds
        and each.id not in cited
        and any(
            rule.sets_aside(view.path, each)
            and not repeats_sentence(
                said.get(rule.covered_by or "", ""), f"{each.text} {each.rest}"
            )
            for rule in rules
        )
    ]


def _surely_binding_aside(
    view: DocumentView,
    cited: Set[str],
    requirements: Iterable[Requirement | KeptRequirement],
    rules: Sequence[SetAsideRule],
) -> int:
    sure, aside = view.binding, _judged_aside(view, cited, requirements, rules)
    return sum((each.page, each.text) in sure for each in aside)


def _cover_numbers(
    view: DocumentView,
    numbers: NumberClass,
    quotes: Quotes,
    sets_aside: Callable[[str, Passage], bool],
) -> NumberCoverage:
    """Count the entries that are cited; of several in one quote only the first one is."""
    passages = [(entry.page, text) for entry in numbers.entries for text in entry.passages]
    owners = [entry for entry in numbers.entries for _ in entry.passages]
    touched = touched_passages(view, passages, quotes)
    first_of: dict[Touch, NumberedEntry] = {}
    for owner, touches in zip(owners, touched, strict=True):
        for touch in touches:
            first_of.setdefault(touch, owner)
    by_statement: dict[str, dict[str, str]] = {}
    for touch, owner in first_of.items():
        for statement in quotes[view.path, touch.page][touch.quote]:
            said = " ".join([owner.id, *owner.passages, owner.rest])
            by_statement.setdefault(statement, {})[owner.id] = said
    cited = {
        id
        for statement, entries in by_statement.items()
        for id in carried_passages(statement, entries)
    }
    uncited = [entry for entry in numbers.entries if entry.id not in cited]
    open_ = [entry for entry in uncited if not sets_aside(view.path, entry)]
    return NumberCoverage(
        numbers, len(numbers.entries) - len(uncited), len(uncited) - len(open_), open_
    )

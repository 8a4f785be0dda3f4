"""A document with what was decided about it, and the sentences that count as candidates of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from activities.documents.pages import Page
from activities.requirements.completeness import DocumentDecisions, SampledSentence
from activities.requirements.text.candidate_sentences import MAX_TEXT, Candidate, Form
from activities.requirements.text.numbering import NumberClass, NumberedEntry
from activities.requirements.text.sentences import Sentence, cut_sentence
from activities.requirements.text.statements import DocumentStatements, statements_of
from activities.text.indicators import shipped_indicators
from config.schema.agent_sections import AgentSettings

ALARM_SHARE = 0.05
ALARM_SENTENCES = 20
"""From so many sentences on, a share says something."""
LEAST_WORDS = 3
OWN_FORMS = frozenset(("words", "order", "item"))
"""Forms by which a sentence binds by itself, and not by likeness to others."""
LABEL_WORDS = 2
"""Words of a lead-in that is a mere label, such as "Control:"."""
MAX_PASSAGES = 8
"""Passages of a candidate: lists in lists have several lead-ins."""
MAX_WIDENED = 400
BESIDE = 0.5
"""What the confidence in a sentence is multiplied with that stands beside the entries."""
_WILL = re.compile(r"\b(?:will|won['\u2019]t)\b")
_STATEMENT = re.compile(
    r"(?:(?:The|Each|Every|All|An?|Der|Die|Das|Jede[rs]?|Ein|Eine)\s+)?[A-Z\u00c4\u00d6\u00dc][\w-]*(?:\s+[\w-]+){0,3}?"
    r"\s+(?!is\b|has\b|was\b|this\b|its\b|thus\b|as\b)[a-z]{2,}[^s\W]s\s"
)


@dataclass(frozen=True)
class DocumentView:
    path: str
    pages: Sequence[Page]
    decisions: DocumentDecisions
    settings: AgentSettings

    @property
    def binding(self) -> set[tuple[int, str]]:
        """Page and text of the sentences that bind by words or form, for sure enough."""
        least = self.settings.confidence_threshold
        return {
            (each.page, each.text)
            for each in self.candidates
            if each.binds and each.confidence >= least and each.form in OWN_FORMS
        }

    @property
    def statements(self) -> DocumentStatements:
        return statements_of(self.pages)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The candidates by their words, and those that a sample or a form of the job adds.

        In a catalogue, what stands outside of its entries explains them: it is less sure.
        """
        return [
            each.model_copy(update={"confidence": round(each.confidence * BESIDE, 2)})
            if each.id in self.beside
            else each
            for each in self._all_candidates
        ]

    @cached_property
    def named(self) -> dict[str, Candidate]:
        return {each.id: each for each in self.candidates}

    @cached_property
    def _all_candidates(self) -> list[Candidate]:
        return [*self.statements.candidates, *self._widened()]

    @cached_property
    def beside(self) -> set[str]:
        """The candidates outside of the entries of a catalogue; empty if it is none.

        A catalogue has more entries that are requirements than binding sentences outside of them.
        What stands in the row of an entry, in a column that explains it, is no such sentence.
        """
        entries = self._entries
        outside = [
            each
            for each in self._all_candidates
            if each.form != "sampled" and not self.is_in_entry(each.page, each.text)
        ]
        binding = sum(each.binds and each.number not in entries for each in outside)
        return {each.id for each in outside} if binding < len(entries) else set()

    def is_in_entry(self, page: int, text: str) -> bool:
        """Whether it stands in an entry that is a requirement by its number."""
        return any(text in passage for passage in self._entry_words.get(page, []))

    @cached_property
    def _entry_words(self) -> dict[int, list[str]]:
        words: dict[int, list[str]] = {}
        for entry in self._entries.values():
            words.setdefault(entry.page, []).extend(entry.passages)
        return words

    @property
    def _entries(self) -> dict[str, NumberedEntry]:
        return {
            entry.id: entry
            for numbers in self.statements.number_classes
            if self.are_requirements(numbers)
            for entry in numbers.entries
        }

    @property
    def alarm(self) -> str:
        """Why the words of the document prove little; empty if they are enough."""
        count = sum(not each.is_heading for each in self.statements.in_order)
        binding = sum(each.binds for each in self.candidates)
        numbered = any(self.are_requirements(each) for each in self.statements.number_classes)
        if numbered or count < ALARM_SENTENCES or binding >= ALARM_SHARE * count:
            return ""
        return (
            f"only {binding:,} of its {count:,} sentences bind by their words, so its requirements "
            "may be told in another form: read a page, and see settings.forms and decide_numbers"
        )

    def passages_of(self, id: str) -> list[tuple[int, str]]:
        """Return page and words of a candidate, with those before its list, or of a number.

        Of the only candidate in an entry that is a requirement by its number, all words of the
        entry.
        """
        candidate = self.named.get(id)
        entry = self.entry(candidate.number if candidate else id)
        if entry and (
            candidate is None
            or (self.is_ledger(entry) and self._candidates_in(entry) == [candidate])
        ):
            passages = [(entry.page, passage) for passage in entry.passages]
            return passages + ([(entry.page + 1, entry.rest)] if entry.rest else [])
        if candidate is None:
            return []
        passages = [(candidate.page, candidate.text)]
        passages += [(candidate.page + 1, candidate.rest)] if candidate.rest else []
        above: Candidate | None = candidate
        while above and above.lead_in and len(passages) < MAX_PASSAGES:
            if len(above.lead_in.split()) > LABEL_WORDS:
                passages.insert(0, (above.lead_page, above.lead_in))
            above = self.named.get(above.lead or "")
        return passages

    def _candidates_in(self, entry: NumberedEntry) -> list[Candidate]:
        return [
            each
            for each in self.candidates
            if each.binds
            and each.page == entry.page
            and any(each.text in part for part in entry.passages)
        ]

    def is_ledger(self, entry: NumberedEntry) -> bool:
        """Whether the entries of its class are requirements."""
        return any(
            self.are_requirements(numbers)
            for numbers in self.statements.number_classes
            if entry in numbers.entries
        )

    def entry(self, id: str) -> NumberedEntry | None:
        """Return what the document numbers so; None if it numbers nothing so."""
        entries = (each for numbers in self.statements.number_classes for each in numbers.entries)
        return next((each for each in entries if each.id == id), None)

    def are_requirements(self, numbers: NumberClass) -> bool | None:
        """Whether the entries of a class are requirements; None if nobody has decided."""
        if numbers.name in self.decisions.numbers:
            return self.decisions.numbers[numbers.name].are_requirements
        if any(re.fullmatch(pattern, numbers.entries[0].id) for pattern in self.settings.items):
            return True
        known = numbers.are_requirements
        if known is False and _has_sampled_requirement(numbers, self._new_hits):
            return None
        return known

    @property
    def _new_hits(self) -> list[SampledSentence]:
        """The requirements of the samples that no word or form had shown."""
        known = {(each.page, each.text) for each in self.statements.candidates if each.binds}
        return [
            each
            for each in self.decisions.hits
            if (each.page, cut_sentence(each.text, MAX_TEXT)) not in known
        ]

    def _widened(self) -> list[Candidate]:
        """Return the sentences like those that a sample showed to be requirements."""
        hits, forms = self._new_hits, self.settings.forms
        if not hits and not forms:
            return []
        sentences = self.statements.in_order
        first = len(self.statements.candidates) + 1
        known = {(each.page, each.text) for each in self.statements.candidates}
        exact = {(each.page, each.text) for each in hits}
        sections = {each.section for each in sentences if (each.page, each.text) in exact} - {""}
        begins = {_beginning(each.text) for each in hits} - {""}
        candidates = []
        for number, each in enumerate(sentences):
            text = cut_sentence(each.text, MAX_TEXT)
            if each.is_heading or len(text.split()) < LEAST_WORDS or (each.page, text) in known:
                continue
            form: Form | None = None
            if (
                (each.page, each.text) in exact
                or _beginning(each.text) in begins
                or each.section in sections
            ):
                form = "sampled"
            elif ("will" in forms and _WILL.search(text)) or (
                "statements" in forms and _STATEMENT.match(text)
            ):
                form = "statement"
            if form:
                candidates.append(sentence_as_candidate(first + number, each, text, form))
        return candidates[:MAX_WIDENED]


def sentence_as_candidate(number: int, sentence: Sentence, text: str, form: Form) -> Candidate:
    """Return a sentence that no word shows to bind as a candidate."""
    return Candidate(
        id=f"C-{number:03d}", page=sentence.page, section=sentence.section, text=text,
        rest=cut_sentence(sentence.rest, MAX_TEXT),
        language=shipped_indicators().language_of(text), modality="obligation", indicators=[],
        regulation=[], confidence=0.5, form=form, number=sentence.source_id,
    )  # fmt: skip


def _beginning(text: str) -> str:
    """Return the words by which sentences of the same form begin: the actor, not an article."""
    words = re.findall(r"[^\W\d_][\w-]*", text)[:2]
    if not words or words[0][0].islower():
        return ""
    frequent = shipped_indicators().words
    return " ".join(words) if words[0].lower() in frequent else words[0]


def _has_sampled_requirement(numbers: NumberClass, hits: Sequence[SampledSentence]) -> bool:
    return any(
        hit.page == entry.page and any(hit.text in passage for passage in entry.passages)
        for entry in numbers.entries
        for hit in hits
    )

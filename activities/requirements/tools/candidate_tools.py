"""Tools that show what of a document may be a requirement: candidates, relevance, terms."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from activities.documents.pages import Page, name_unread_pages
from activities.requirements import candidate_list
from activities.requirements.coverage import covered_candidates
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement_survey import view_document
from activities.requirements.text.languages import UNKNOWN_LANGUAGE, is_language_known
from activities.requirements.text.numbering import NumberClass
from activities.requirements.text.relevance import judge_relevance
from activities.requirements.versions import read_new_version
from activities.text.indicators import shipped_indicators
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path, read_workspace_pages
from protocol.short_text import count_noun

MAX_LISTED = 120
LISTED_TEXT = 110
WHOLE_LIST = 18_000
"""Characters up to which the candidates are shown in full; a tool result is cut at more."""
MAX_TERMS = 60


@tool("requirements", effect="writes", local=False, seconds=180)
def identify_requirement_candidates(context: ToolContext, path: DocumentPath) -> str:
    """Find what may be requirements: numbered entries, and sentences that bind by words or form.

    Answers with the list, in full where it is short, and keeps those of all documents identified
    so far in candidates/candidates.json and, to be read, in candidates/candidates.md; asked about a
    document again, it replaces what it had there. Indicators of GoBD and GDPR are named. Recall
    comes before precision: decide on each, and read the document for what no wording shows, such
    as tables. Those below the agent's threshold stand at the end of their document.
    """
    path = canonical_document_path(context.files, path)
    threshold = context.config.settings.confidence_threshold
    view = view_document(context, path)
    every = view.candidates
    covered_count = 0
    if version := read_new_version(context.files):
        covered = covered_candidates(view, version.kept)
        covered_count = len(covered)
        every = [each for each in every if each.id not in covered]
    classes = [(each, view.are_requirements(each)) for each in view.statements.number_classes]
    entries = [entry for each, yes in classes if yes for entry in each.entries]
    likely = [c for c in every if c.confidence >= threshold]
    context.files = candidate_list.put_candidates(context.files, path, every, entries, threshold)
    further = _remarks(view, len(every) - len(likely), covered_count, threshold)
    further += "".join(f"\n{line}" for line in _number_lines(classes))
    shown = sorted(
        (each for each in every if each in likely or each.binds),
        key=lambda each: each.confidence < threshold,
    )
    if not shown:
        return f"No candidates in {path}.{further}"
    lines = [candidate_list.describe_candidate(each) for each in shown[:MAX_LISTED]]
    if sum(map(len, lines)) > WHOLE_LIST:
        lines = [
            candidate_list.describe_candidate(each, LISTED_TEXT) for each in shown[:MAX_LISTED]
        ]
    if len(shown) > MAX_LISTED:
        lines.append(
            f"[TRUNCATED {len(shown) - MAX_LISTED} more in {candidate_list.MARKDOWN_PATH}]"
        )
    head = f"{count_noun(len(likely), 'candidate')} in {path}, all in "
    return "\n".join([f"{head}{candidate_list.MARKDOWN_PATH}.{further}", *lines])


def _remarks(view: DocumentView, weak: int, covered_count: int, threshold: float) -> str:
    """Say what is not in the list, and what it may lack."""
    text = f" {weak} more below confidence {threshold:g} are listed there." if weak else ""
    if view.beside:
        text += (
            f" {len(view.beside)} stand beside the numbered entries, which they explain, so they "
            "are less sure."
        )
    text += name_unread_pages(view.pages)
    if not is_language_known(view.pages):
        text += f" {UNKNOWN_LANGUAGE}: read all of it."
    if covered_count:
        text += f" {covered_count} are left out, since requirements that are kept cite them."
    return f"{text}\nBeware: {view.alarm}." if view.alarm else text


def _number_lines(classes: list[tuple[NumberClass, bool | None]]) -> list[str]:
    says = {
        True: "each is to be cited or set aside, and they are in the list",
        False: "not taken for requirements; decide_numbers says otherwise",
        None: "undecided: say with decide_numbers whether they are requirements",
    }
    return [f"Numbers {each.description}: {says[yes]}." for each, yes in classes]


@tool("requirements", effect="reads", phases=("tactical",))
def assess_relevance(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=4000, description="A statement.")],
) -> str:
    """Assess whether a statement is relevant as a requirement, with a figure from 0 to 1.

    By its language of obligation (English and German), the regulations it speaks of and its form:
    an indication, not a verdict. Below the agent's threshold it is called not relevant.
    """
    result = judge_relevance(text)
    threshold = context.config.settings.relevance_threshold
    verdict = "relevant" if result.score >= threshold else "not relevant"
    return (
        f"Relevance {result.score:.2f} by its wording, {verdict} (threshold {threshold:g}): "
        + "; ".join(result.signs)
    )


@tool("requirements", effect="reads", phases=("tactical",), local=False, seconds=180)
def extract_entity_mentions(context: ToolContext, path: DocumentPath) -> str:
    """List what a document speaks of: regulations, abbreviations, defined terms, names.

    Each with how often and on which pages it stands; those that stand most often come first.
    """
    terms = find_mentions(read_workspace_pages(context, path))
    if not terms:
        return f"No terms in {path}."
    lines = [
        f"{mention.text} · {mention.kind} · {mention.count} · "
        f"p.{', '.join(map(str, mention.pages))}"
        for mention in terms[:MAX_TERMS]
    ]
    if len(terms) > MAX_TERMS:
        lines.append(f"[TRUNCATED {len(terms) - MAX_TERMS} more that stand less often]")
    return "\n".join([f"{len(terms)} terms in {path}:", *lines])


MentionKind = Literal["regulation", "abbreviation", "defined term", "name", "term"]
MAX_TERM_CHARACTERS = 80
_ABBREVIATION = re.compile(r"\b[A-ZÄÖÜ][A-ZÄÖÜ0-9]{1,9}\b")
_QUOTED = re.compile(r"[\"“„»]([^\"“”„«»\n]{3,60})[\"”“«]")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÄÖÜ][\w-]+(?:[ \t][A-ZÄÖÜ][\w-]+)+\b", re.MULTILINE)
_NOUN = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÄÖÜ][a-zäöüß-]{4,}\b", re.MULTILINE)
_HEADING_SHARE = 0.6


@dataclass(frozen=True)
class Mention:
    """A term, its count, and the numbers of the first pages it is on."""

    text: str
    kind: MentionKind
    count: int
    pages: tuple[int, ...]


def find_mentions(pages: Iterable[Page]) -> list[Mention]:
    """Return the terms of a document, most frequent first; the same pages give the same list.

    Regulations come from the shipped indicators. Other terms are found by form: abbreviations,
    quoted words, consecutive capitalised words, and capitalised words that occur twice.
    """
    mentions: dict[str, tuple[MentionKind, Counter[int]]] = {}
    for page in pages:
        for kind, text in _find_mentioned_terms(page.text):
            term = " ".join(text.split())[:MAX_TERM_CHARACTERS]
            mentions.setdefault(term, (kind, Counter()))[1][page.number] += 1
    selected = [
        Mention(term, kind, places.total(), tuple(places)[:10])
        for term, (kind, places) in mentions.items()
        if places.total() > 1 or kind != "term"
    ]
    return sorted(selected, key=lambda mention: (-mention.count, mention.text))


def _find_mentioned_terms(text: str) -> Iterable[tuple[MentionKind, str]]:
    phrases = shipped_indicators()
    for line in text.splitlines():
        for hit in phrases.find(line):
            if hit.regulation:
                yield "regulation", hit.words
        words = line.split()
        capitals = sum(word[:1].isupper() for word in words)
        if len(words) > 1 and capitals > _HEADING_SHARE * len(words):
            continue  # in a heading, capitals mean nothing
        yield from (("abbreviation", term) for term in _ABBREVIATION.findall(line))
        yield from (("defined term", term) for term in _QUOTED.findall(line))
        named = _NAME.findall(line)
        yield from (("name", term) for term in named)
        inside = " ".join(named)
        yield from (("term", term) for term in _NOUN.findall(line) if term not in inside)

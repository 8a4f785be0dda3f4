"""Tools that show what of a document may be a requirement: candidates, relevance, terms."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.documents import name_unread_pages
from activities.requirements import candidate_list
from activities.requirements.coverage import (
    ALARM_SENTENCES,
    ALARM_SHARE,
    covered_candidates,
)
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement_survey import view_document
from activities.requirements.text.languages import UNKNOWN_LANGUAGE, is_language_known
from activities.requirements.text.mentions import find_mentions
from activities.requirements.text.numbering import NumberClass
from activities.requirements.text.relevance import judge_relevance
from activities.requirements.versions import read_new_version
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
    kept = 0
    if version := read_new_version(context.files):
        covered = covered_candidates(view, version.kept)
        kept = len(covered)
        every = [each for each in every if each.id not in covered]
    classes = [(each, view.are_requirements(each)) for each in view.statements.number_classes]
    entries = [entry for each, yes in classes if yes for entry in each.entries]
    likely = [c for c in every if c.confidence >= threshold]
    context.files = candidate_list.put_candidates(context.files, path, every, entries, threshold)
    further = _remarks(view, len(every) - len(likely), kept, threshold)
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


def _remarks(view: DocumentView, weak: int, kept: int, threshold: float) -> str:
    """Say what is not in the list, and what it may lack."""
    text = f" {weak} more below confidence {threshold:g} are listed there." if weak else ""
    text += name_unread_pages(view.pages)
    if not is_language_known(view.pages):
        text += f" {UNKNOWN_LANGUAGE}: read all of it."
    if kept:
        text += f" {kept} are left out, since requirements that are kept cite them."
    binding = sum(each.binds for each in view.candidates)
    count = sum(not each.is_heading for each in view.statements.in_order)
    numbered = any(view.are_requirements(each) for each in view.statements.number_classes)
    if count >= ALARM_SENTENCES and binding < ALARM_SHARE * count and not numbered:
        text += (
            f"\nOnly {binding:,} of its {count:,} sentences bind by their words: its requirements "
            "may be told in another form. Read a page, and see settings.forms and decide_numbers."
        )
    return text


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

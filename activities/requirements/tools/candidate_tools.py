"""Tools that show what of a document may be a requirement: candidates, relevance, terms."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.documents import name_unread_pages
from activities.requirements import candidate_list, requirement_files
from activities.requirements.coverage import ALARM_SENTENCES, ALARM_SHARE, covered_candidates
from activities.requirements.requirement_survey import view_workspace_document
from activities.requirements.text.languages import UNKNOWN_LANGUAGE, is_language_known
from activities.requirements.text.mentions import find_mentions
from activities.requirements.text.numbering import NumberClass
from activities.requirements.text.relevance import judge_relevance
from activities.requirements.versions import read_new_version
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path, read_workspace_pages

MAX_LISTED = 120
LISTED_TEXT = 110
MAX_TERMS = 60


@tool("requirements", effect="writes", phases=("tactical",), local=False, seconds=180)
def identify_requirement_candidates(context: ToolContext, path: DocumentPath) -> str:
    """Find what may be requirements: numbered entries, and sentences that bind by words or form.

    Answers with the list, and keeps those of all documents identified so far in
    candidates/candidates.json and, to be read, in candidates/candidates.md; asked about a document
    again, it replaces what it had there. Indicators of GoBD and GDPR are named. Recall comes before
    precision: decide on each, and read the document for what no wording shows, such as tables.
    Those below the agent's threshold stand at the end of their document.
    """
    path = canonical_document_path(context.files, path)
    threshold = context.config.settings.confidence_threshold
    pages = read_workspace_pages(context, path)
    try:
        view = view_workspace_document(context.files, path, pages, context.config.settings)
    except requirement_files.InvalidWorkspaceFile as problem:
        raise ToolError(f"{problem}.") from None
    every = view.candidates
    kept = 0
    if version := read_new_version(context.files):
        covered = covered_candidates(view, version.kept)
        kept = len(covered)
        every = [each for each in every if each.id not in covered]
    classes = [(each, view.are_requirements(each)) for each in view.statements.number_classes]
    entries = [entry for each, yes in classes if yes for entry in each.entries]
    likely = [c for c in every if c.confidence >= threshold]
    try:
        context.files = candidate_list.put_candidates(
            context.files, path, every, entries, threshold
        )
    except requirement_files.InvalidWorkspaceFile as problem:
        raise ToolError(f"{problem}. Mend it, or move it away and identify again.") from None
    weak = len(every) - len(likely)
    further = f" {weak} more below confidence {threshold:g} are listed there." if weak else ""
    further += name_unread_pages(pages)
    if not is_language_known(pages):
        further += f" {UNKNOWN_LANGUAGE}: read all of it."
    if kept:
        further += f" {kept} are left out, since requirements that are kept cite them."
    further += "".join(f"\n{line}" for line in _number_lines(classes))
    binding = sum(each.binds for each in every)
    count = sum(not each.is_heading for each in view.statements.in_order)
    if count >= ALARM_SENTENCES and binding < ALARM_SHARE * count and not entries:
        further += (
            f"\nOnly {binding:,} of its {count:,} sentences bind by their words: its requirements "
            "may be told in another form. Read a page, and see settings.forms and decide_numbers."
        )
    if not likely:
        return f"No candidates in {path}.{further}"
    lines = [
        candidate_list.describe_candidate(candidate, LISTED_TEXT)
        for candidate in likely[:MAX_LISTED]
    ]
    if len(likely) > MAX_LISTED:
        lines.append(
            f"[TRUNCATED {len(likely) - MAX_LISTED} more in {candidate_list.MARKDOWN_PATH}]"
        )
    noun = "candidate" if len(likely) == 1 else "candidates"
    head = f"{len(likely)} {noun} in {path}, all in {candidate_list.MARKDOWN_PATH}.{further}"
    return "\n".join([head, *lines])


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

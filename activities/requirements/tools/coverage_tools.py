"""Tools that write down all requirements, and which sentences of the documents they cover.

The results are written by code: a model that copied sixty requirements would make mistakes nobody
sees.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.requirements import candidate_list, requirement_files
from activities.requirements.coverage import Coverage
from activities.requirements.export import requirements_as_pages
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_survey import RequirementSurvey, survey_requirements
from activities.requirements.set_aside_rules import (
    PATH,
    SetAsideRule,
    parse_set_aside_pages,
    put_rules,
    read_set_aside_rules,
)
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.statements import statements_of
from activities.requirements.tools.result_lists import shorten_list, tally_words
from activities.text.safe_text import as_readable_json
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path, read_workspace_pages
from protocol.short_text import count_noun

REQUIREMENTS = "output/requirements.json"
PAGES = "output/requirements.md"
UNCOVERED = "candidates/uncovered.md"
MAX_DOCUMENTS = 30
MAX_PAGES = 60
LISTED_TEXT = 110


@tool("requirements", effect="writes", local=False, seconds=180, owns=(PATH,))
def set_sentences_aside(
    context: ToolContext,
    path: DocumentPath,
    reason: Annotated[
        str, Field(min_length=10, max_length=1000, description="Why they need no requirement.")
    ],
    ids: Annotated[
        list[str] | None, Field(max_length=500, description="Of candidates, such as C-012.")
    ] = None,
    pages: Annotated[str | None, Field(description='"3" or "2-5".')] = None,
    section: Annotated[
        str | None, Field(max_length=200, description="Its number or title; with those below it.")
    ] = None,
    containing: Annotated[
        str | None, Field(min_length=3, max_length=200, description="Words of the sentences.")
    ] = None,
    below: Annotated[
        float | None, Field(gt=0, le=1, description="Only with less confidence than this.")
    ] = None,
    covered_by: Annotated[
        str | None, Field(pattern=r"^REQ-\d{3,9}$", description="The requirement that says it.")
    ] = None,
) -> str:
    """Set sentences of a document aside that need no requirement, by rule and with a reason.

    They are those for which all holds that is given; with nothing given, the whole document is out
    of scope. Each rule is told in the results. A sentence that is cited counts as cited.
    """
    path = canonical_document_path(context.files, path)
    if covered_by and covered_by not in requirement_files.list_requirement_files(context.files):
        raise ToolError(f"covered_by: there is no requirement {covered_by} in this workspace.")
    rule = SetAsideRule(
        document=path,
        reason=reason,
        covered_by=covered_by,
        ids=ids or [],
        pages=pages,
        section=section,
        containing=containing,
        below=below,
    )
    try:
        parse_set_aside_pages(pages)
        rules = read_set_aside_rules(context.files)
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    _check_confidence_threshold(context, below)
    every = statements_of(read_workspace_pages(context, path)).candidates
    if unknown := set(rule.ids) - {each.id for each in every}:
        raise ToolError(f"{path} has no candidate {', '.join(sorted(unknown)[:5])}.")
    matching = [each for each in every if each.binds and rule.sets_aside(path, each)]
    if not matching and not rule.takes_whole_document:
        raise ToolError(f"No sentence of {path} with words of obligation fits that.")
    if rule in rules:
        raise ToolError("That rule is there already.")
    context.files = put_rules(context.files, [*rules, rule])
    lines = [candidate_list.describe_candidate(each, LISTED_TEXT) for each in matching[:10]]
    more = [f"and {len(matching) - 10:,} more"] if len(matching) > 10 else []
    count = count_noun(len(matching), "sentence")
    return "\n".join([f"Set aside {count} by the rule {rule.description}", *lines, *more])


@tool("requirements", effect="writes", local=False, seconds=180)
def collect_requirements(context: ToolContext) -> str:
    """Write output/requirements.json from every requirements/req_NNN/final.json.

    output/requirements.md has the same to be read. The text of the documents is searched for
    sentences that say must, must not or should: those that no citation touches and no rule sets
    aside are in candidates/uncovered.md, and the job cannot complete while there are any. Answers
    with them, with how many requirements there are of each force and type, the pages cited, and
    what is wrong with a `final.json` that was left out. Call it again when something has changed.
    """
    try:
        now = survey_requirements(context.files, context.job, context.heartbeat)
    except requirement_files.InvalidWorkspaceFile as problem:
        raise ToolError(f"{problem}.") from None
    for path, text in {
        REQUIREMENTS: as_readable_json([each.content for each in now.requirements]),
        PAGES: requirements_as_pages(now.requirements, _set_aside_rule_lines(now)),
        UNCOVERED: _uncovered_sentence_page(now.coverage),
    }.items():
        context.files = context.files.write(path, text.encode())
    lines = [
        f"Wrote {count_noun(len(now.requirements), 'requirement')} to {REQUIREMENTS} and {PAGES}."
    ]
    if now.broken:
        lines += ["Left out, to be mended:", *shorten_list(now.broken)]
    if now.requirements:
        lines.append(f"By force: {tally_words(each.force for each in now.requirements)}.")
        lines.append(f"By type: {tally_words(each.type for each in now.requirements)}.")
        lines += [
            "Pages cited:",
            *shorten_list(_cited_page_lines(now.requirements), MAX_DOCUMENTS),
        ]
    return "\n".join([*lines, *_coverage_lines(now)])


def _check_confidence_threshold(context: ToolContext, below: float | None) -> None:
    threshold = context.config.settings.confidence_threshold
    if below is not None and below > threshold:
        raise ToolError(
            f"below: at most {threshold:g}, the agent's threshold. Name those above it by ids, "
            "pages, section or words."
        )


def _cited_page_lines(requirements: list[Requirement]) -> list[str]:
    cited: dict[str, set[int]] = {}
    for citation in (each for requirement in requirements for each in requirement.citations):
        cited.setdefault(citation.document, set()).add(citation.page)
    lines = []
    for document, pages in sorted(cited.items()):
        numbers = shorten_list([str(page) for page in sorted(pages)], MAX_PAGES)
        lines.append(f"- {document}: {', '.join(numbers)}")
    return lines


def _coverage_lines(now: RequirementSurvey) -> list[str]:
    """Describe the coverage in lines."""
    coverage = now.coverage
    aside = sum(coverage.set_aside.values())
    what = f"{count_noun(coverage.total, 'sentence')} that say must, must not or should"
    if coverage.uncovered:
        lines = [
            f"Not covered: {len(coverage.uncovered):,} of {what} are neither cited nor set aside. "
            f"All of them, in {UNCOVERED}:",
            *shorten_list([_uncovered_candidate_line(*each) for each in coverage.uncovered]),
        ]
    else:
        lines = [f"Covered: of {what} {coverage.cited:,} are cited and {aside:,} set aside."]
    lines += _set_aside_rule_lines(now)
    if coverage.weaker_uncovered:
        lines.append(
            f"No citation touches {count_noun(coverage.weaker_uncovered, 'other candidate')}: "
            "permissions, and "
            "items of lists without a word of obligation."
        )
    lines += [f"Nothing is complete of {path}: {why}" for path, why in now.badly_read.items()]
    return lines


def _set_aside_rule_lines(now: RequirementSurvey) -> list[str]:
    """Describe each rule that sets sentences aside, with their number."""
    return [
        f"Set aside {count:,}: {now.rules[place].description}"
        for place, count in sorted(now.coverage.set_aside.items())
    ]


def _uncovered_sentence_page(coverage: Coverage) -> str:
    lines = ["# Sentences that nothing covers", ""]
    lines += [
        _uncovered_candidate_line(document, each, None) for document, each in coverage.uncovered
    ] or ["None."]
    return "\n".join(lines) + "\n"


def _uncovered_candidate_line(document: str, candidate: Candidate, most: int | None = 60) -> str:
    return f"- {document}: {candidate_list.describe_candidate(candidate, most)}"

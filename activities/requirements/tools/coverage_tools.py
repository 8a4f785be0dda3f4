"""Tools that write down all requirements, and which sentences of the documents they cover.

The results are written by code: a model that copied sixty requirements would make mistakes nobody
sees.
"""

from typing import Annotated

from pydantic import Field

from activities.documents.pages import PageRanges
from activities.requirements import candidate_list, requirement_files, set_aside_rules
from activities.requirements.completeness import PATH as DECISIONS
from activities.requirements.completeness import NumberDecision, put_decisions, read_decisions
from activities.requirements.coverage import Coverage
from activities.requirements.document_view import DocumentView
from activities.requirements.export import requirements_as_pages
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_survey import RequirementSurvey, view_document
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.numbering import NumberedEntry
from activities.requirements.tools.sample_tools import (
    draw_samples,
    sample_lines,
    sample_state,
    survey,
    uncovered_candidate_line,
)
from activities.requirements.versions import version_as_data
from activities.text.safe_text import as_readable_json
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path
from protocol.short_text import count_noun, shorten_list, tally_words

REQUIREMENTS = "output/requirements.json"
PAGES = "output/requirements.md"
UNCOVERED = "candidates/uncovered.md"
MAX_DOCUMENTS = 30
MAX_PAGES = 60
LISTED_TEXT = 110


@tool("requirements", effect="writes", local=False, seconds=180, owns=(set_aside_rules.PATH,))
def set_sentences_aside(
    context: ToolContext,
    path: DocumentPath,
    reason: Annotated[
        str, Field(min_length=10, max_length=1000, description="Why they need no requirement.")
    ],
    ids: Annotated[
        list[str] | None,
        Field(max_length=500, description="Of candidates, or numbers of the text."),
    ] = None,
    pages: Annotated[str | None, Field(description="Pages and ranges.")] = None,
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
    of scope: name it in `unresolved`. Each rule stands in the results, and the sample has some of
    what the rules set aside. A sentence that is cited counts as cited.
    """
    path = canonical_document_path(context.files, path)
    if covered_by and covered_by not in requirement_files.list_requirement_files(context.files):
        raise ToolError(f"covered_by: there is no requirement {covered_by} in this workspace.")
    rule = set_aside_rules.SetAsideRule(
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
        PageRanges.parse(pages or "1")
        rules = set_aside_rules.read_set_aside_rules(context.files)
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    _check_confidence_threshold(context, below)
    matching = _passages_to_set_aside(view_document(context, path), rule)
    if rule in rules:
        raise ToolError("That rule is there already.")
    context.files = set_aside_rules.put_rules(context.files, [*rules, rule])
    lines = [_describe_passage(each, LISTED_TEXT) for each in matching[:10]]
    more = [f"and {len(matching) - 10:,} more"] if len(matching) > 10 else []
    count = count_noun(len(matching), "sentence")
    return "\n".join([f"Set aside {count} by the rule {rule.description}", *lines, *more])


def _passages_to_set_aside(
    view: DocumentView, rule: set_aside_rules.SetAsideRule
) -> list[set_aside_rules.Passage]:
    """Return what a new rule takes. Raises ToolError if that is nothing."""
    entries = [
        entry
        for numbers in view.statements.number_classes
        if view.are_requirements(numbers)
        for entry in numbers.entries
    ]
    known = {each.id for each in view.candidates} | {each.id for each in entries}
    if unknown := set(rule.ids) - known:
        named = ", ".join(sorted(unknown)[:5])
        raise ToolError(f"{view.path} has no candidate or number {named}.")
    every: list[set_aside_rules.Passage] = [*(c for c in view.candidates if c.binds), *entries]
    matching = [each for each in every if rule.sets_aside(view.path, each)]
    if not matching and not rule.takes_places:
        raise ToolError(f"No binding sentence and no number of {view.path} fits that.")
    return matching


@tool("requirements", effect="writes", local=False, seconds=180)
def collect_requirements(context: ToolContext) -> str:
    """Write output/requirements.json from every requirements/req_NNN/final.json.

    output/requirements.md has the same to be read. The documents' own numbers and the sentences
    that bind by words or form are counted: those that no citation touches and no rule sets aside
    are in candidates/uncovered.md, and the job cannot complete while there are any. When none is
    left, a sample is drawn of the sentences that nothing cites, for judge_sample. Answers with
    all that, with how many requirements there are of each force and type, the pages cited, and
    what is wrong with a `final.json` that was left out. Call it again when something has changed.
    """
    now = survey(context)
    if not now.coverage.uncovered and not now.coverage.open_entries:
        draw_samples(context, now)
    for path, text in {
        REQUIREMENTS: as_readable_json(
            [*(each.content for each in now.requirements), *version_as_data(context.files)]
        ),
        PAGES: requirements_as_pages(
            now.requirements,
            now.statements,
            _set_aside_rule_lines(now),
            sample_lines(now),
            [f"{each.ref} · {each.force} · {each.status} · {each.text}" for each in now.kept],
        ),
        UNCOVERED: _uncovered_sentence_page(now.coverage),
    }.items():
        context.files = context.files.write(path, text.encode())
    lines = [
        f"Wrote {count_noun(len(now.requirements), 'requirement')} to {REQUIREMENTS} and {PAGES}."
    ]
    if now.kept:
        lines.append(f"Kept from the earlier version: {count_noun(len(now.kept), 'requirement')}.")
    if now.broken:
        lines += ["Left out, to be mended:", *shorten_list(now.broken)]
    if now.requirements:
        lines.append(f"By force: {tally_words(each.force for each in now.requirements)}.")
        lines.append(f"By type: {tally_words(each.type for each in now.requirements)}.")
        lines += ["Pages cited:", *shorten_list(_cited_page_lines(now.requirements), MAX_DOCUMENTS)]
    return "\n".join([*lines, *_coverage_lines(now)])


@tool("requirements", effect="writes", local=False, seconds=60, owns=(DECISIONS,))
def decide_numbers(
    context: ToolContext,
    path: DocumentPath,
    numbers: Annotated[
        str, Field(min_length=1, max_length=200, description="The form, as it is shown.")
    ],
    are_requirements: bool,
    reason: Annotated[str, Field(min_length=10, max_length=1000)],
) -> str:
    """Say whether the entries that a document numbers in this form are its requirements.

    If they are, each number is to be cited or set aside.
    """
    path = canonical_document_path(context.files, path)
    view = view_document(context, path)
    classes = {each.name: each for each in view.statements.number_classes}
    # The form is shown at the beginning of a line, which may be given whole.
    numbers = next((name for name in classes if numbers.startswith(name)), numbers)
    if numbers not in classes:
        raise ToolError(f"{path} has no such numbers; its forms: {'; '.join(classes) or 'none'}.")
    view.decisions.numbers[numbers] = NumberDecision(
        are_requirements=are_requirements, reason=reason
    )
    context.files = put_decisions(
        context.files, read_decisions(context.files) | {path: view.decisions}
    )
    word = "are" if are_requirements else "are not"
    return f"{classes[numbers].description}: they {word} requirements."


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
    coverage = now.coverage
    lines = list(now.statements)
    if coverage.open_entries:
        lines += [
            f"Not covered: {count_noun(len(coverage.open_entries), 'number')} of the documents "
            f"neither cited nor set aside. All of them, in {UNCOVERED}:",
            *shorten_list([_open_entry_line(*each) for each in coverage.open_entries]),
        ]
    if coverage.uncovered:
        lines += [
            f"Not covered: {len(coverage.uncovered):,} of {coverage.total:,} binding sentences are "
            f"neither cited nor set aside. All of them, in {UNCOVERED}:",
            *shorten_list([uncovered_candidate_line(*each) for each in coverage.uncovered]),
            *([coverage.unsaid] if coverage.unsaid else []),
        ]
    elif not coverage.open_entries:
        aside = sum(each.set_aside for each in coverage.documents)
        lines.append(
            f"Covered: of {count_noun(coverage.total, 'binding sentence')} {coverage.cited:,} are "
            f"cited and {aside:,} set aside."
        )
    for document in coverage.documents:
        if alarm := now.views[document.path].alarm:
            lines.append(f"Beware, {document.path}: {alarm}.")
        lines += sample_state(now, document.path)[1:]
    lines += _set_aside_rule_lines(now)
    if coverage.weaker_uncovered:
        lines.append(f"No citation touches {count_noun(coverage.weaker_uncovered, 'permission')}.")
    lines += [f"Nothing is complete of {path}: {why}" for path, why in now.badly_read.items()]
    return lines


def _set_aside_rule_lines(now: RequirementSurvey) -> list[str]:
    """Describe each rule that sets sentences aside, with their number."""
    return [
        f"Set aside {count:,}: {now.rules[place].description}"
        for place, count in sorted(now.coverage.set_aside.items())
    ]


def _uncovered_sentence_page(coverage: Coverage) -> str:
    lines = ["# Numbers and sentences that nothing covers", ""]
    lines += [
        *(_open_entry_line(*each, None) for each in coverage.open_entries),
        *(uncovered_candidate_line(document, each, None) for document, each in coverage.uncovered),
    ] or ["None."]
    return "\n".join(lines) + "\n"


def _open_entry_line(document: str, entry: NumberedEntry, most: int | None = 60) -> str:
    return f"- {document}: {candidate_list.describe_entry(entry, most)}"


def _describe_passage(passage: set_aside_rules.Passage, most: int) -> str:
    if isinstance(passage, Candidate):
        return candidate_list.describe_candidate(passage, most)
    return candidate_list.describe_entry(passage, most)

"""Results of the requirement agents, written by code from the recorded data.

A model that copied sixty requirements would make mistakes nobody sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from activities.job.activity_context import attempt_started_ms
from activities.requirements import candidate_list, requirement_files, validation_claims
from activities.requirements.coverage import Coverage
from activities.requirements.export import requirements_as_pages
from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError
from activities.requirements.graph.neighbours import Relations, requirement_neighbours
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_survey import RequirementSurvey, survey_requirements
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.tools.validation_tools import validator_integrates_graph
from activities.stores.outbox import OutboxWriter, flush_outbox
from activities.stores.store_errors import StoreUnavailableError
from activities.text.safe_text import as_readable_json
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError

REQUIREMENTS = "output/requirements.json"
PAGES = "output/requirements.md"
UNCOVERED = "candidates/uncovered.md"
DECISIONS = "output/decisions.json"
MAX_DOCUMENTS = 30
MAX_PAGES = 60
MAX_NAMED = 60


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
        f"Wrote {_count_noun(len(now.requirements), 'requirement')} to {REQUIREMENTS} and {PAGES}."
    ]
    if now.broken:
        lines += ["Left out, to be mended:", *_shorten_list(now.broken)]
    if now.requirements:
        lines.append(f"By force: {_tally_requirements(each.force for each in now.requirements)}.")
        lines.append(f"By type: {_tally_requirements(each.type for each in now.requirements)}.")
        lines += [
            "Pages cited:",
            *_shorten_list(_cited_page_lines(now.requirements), MAX_DOCUMENTS),
        ]
    return "\n".join([*lines, *_coverage_lines(now)])


@tool("validation", effect="outside", local=False, seconds=180)
def collect_decisions(context: ToolContext) -> str:
    """Write output/decisions.json from what the store has of the decisions of this job.

    Each with its reasons, what it is a duplicate of, and what it is related to in the graph.
    Answers with how many there are of each kind, what is accepted and not in the graph or related
    to nothing, what is in the graph and not accepted, and what is not decided. Call it again when
    something has changed.
    """
    writer = OutboxWriter.for_call(context)
    own_jobs = (context.job, *context.earlier_jobs)
    try:
        remarks = flush_outbox(writer, "relational")
        now = attempt_started_ms()
        decisions, undecided, free = writer.store.read(
            lambda store: validation_claims.list_claim_decisions(store, own_jobs, now)
        )
    except StoreUnavailableError as error:
        raise DependencyUnavailable(str(error)) from None
    accepted = [each.ref for each in decisions if each.status == "accepted"]
    known: dict[str, Relations] | None = None
    try:
        if validator_integrates_graph(context):
            remarks += flush_outbox(writer, "graph")
            every = [each.ref for each in decisions]
            known = requirement_neighbours(
                context.root, context.config.graph_schema, every, context.heartbeat
            )
    except (StoreUnavailableError, GraphUnavailableError) as error:
        remarks.append(f"The graph does not answer, so what it has is not shown: {error}")
    except GraphQueryError as error:
        raise ToolError(f"The graph refused it: {error}") from None
    content = [_decision_as_data(each, known) for each in decisions]
    context.files = context.files.write(DECISIONS, as_readable_json(content).encode())
    lines = [f"Wrote {_count_noun(len(decisions), 'decision')} to {DECISIONS}."]
    if decisions:
        lines.append(f"By verdict: {_tally_requirements(each.status for each in decisions)}.")
    if known is not None:
        lines += _named_decision_lines(
            "Accepted and not in the graph", [r for r in accepted if r not in known]
        )
        alone = [r for r in accepted if r in known and not known[r]]
        lines += _named_decision_lines("In the graph and related to nothing", alone)
        over = [each.ref for each in decisions if each.status != "accepted" and each.ref in known]
        lines += _named_decision_lines(
            "Not accepted and still in the graph; decide on them again", over
        )
    lines += _named_decision_lines("Taken and not decided", undecided)
    lines.append(f"Drafts left to take: {free:,}.")
    return "\n".join([*lines, *remarks])


def _cited_page_lines(requirements: list[Requirement]) -> list[str]:
    cited: dict[str, set[int]] = {}
    for citation in (each for requirement in requirements for each in requirement.citations):
        cited.setdefault(citation.document, set()).add(citation.page)
    lines = []
    for document, pages in sorted(cited.items()):
        numbers = _shorten_list([str(page) for page in sorted(pages)], MAX_PAGES)
        lines.append(f"- {document}: {', '.join(numbers)}")
    return lines


def _coverage_lines(now: RequirementSurvey) -> list[str]:
    """Describe the coverage in lines."""
    coverage = now.coverage
    aside = sum(coverage.set_aside.values())
    what = f"{_count_noun(coverage.total, 'sentence')} that say must, must not or should"
    if coverage.uncovered:
        lines = [
            f"Not covered: {len(coverage.uncovered):,} of {what} are neither cited nor set aside. "
            f"All of them, in {UNCOVERED}:",
            *_shorten_list([_uncovered_candidate_line(*each) for each in coverage.uncovered]),
        ]
    else:
        lines = [f"Covered: of {what} {coverage.cited:,} are cited and {aside:,} set aside."]
    lines += _set_aside_rule_lines(now)
    if coverage.weaker_uncovered:
        lines.append(
            f"No citation touches {_count_noun(coverage.weaker_uncovered, 'other candidate')}: "
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


def _decision_as_data(
    each: validation_claims.DecidedRequirement, known: dict[str, Relations] | None
) -> dict[str, Any]:
    statements = {
        "id": each.ref,
        "decision": each.status,
        "reasons": each.reasons,
        "duplicate_of": each.duplicate_of,
        "text": each.text,
    }
    if known is None or each.status != "accepted":
        return statements
    return statements | {"in_graph": each.ref in known, "related": known.get(each.ref, [])}


def _named_decision_lines(what: str, names: list[str]) -> list[str]:
    return [f"{what}: {', '.join(_shorten_list(names))}."] if names else []


def _shorten_list(entries: list[str], most: int = MAX_NAMED) -> list[str]:
    more = len(entries) - most
    return [*entries[:most], f"and {more:,} more"] if more > 0 else entries


def _tally_requirements(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(Counter(names).items()))


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

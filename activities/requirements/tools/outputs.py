"""The results of the requirement agents, written from what the system has of them.

A model that writes sixty requirements down once more makes mistakes that nobody would see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from activities.checkpoints import Files
from activities.documents import Page, name_unread_pages
from activities.job.activity_context import began
from activities.requirements import claims, folder, listing
from activities.requirements.coverage import Coverage, measure_coverage
from activities.requirements.export import as_pages
from activities.requirements.graph.interface import GraphAway, GraphRefused
from activities.requirements.graph.neighbours import Place, places
from activities.requirements.requirement import Requirement
from activities.requirements.set_aside import Rule, read_rules
from activities.requirements.text.candidates import Candidate
from activities.requirements.tools.validation import integrates
from activities.stores.errors import StoreAway
from activities.stores.outbox import Writer, flush
from activities.text.plain import as_json
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError, Unreached
from activities.toolkit.registry import tool
from activities.tools.documents import inputs_in, reading_in

REQUIREMENTS = "output/requirements.json"
PAGES = "output/requirements.md"
UNCOVERED = "candidates/uncovered.md"
DECISIONS = "output/decisions.json"
MOST_DOCUMENTS = 30
MOST_PAGES = 60
MOST_NAMED = 60


@dataclass(frozen=True)
class Survey:
    """What the requirements of a workspace are, and how far they cover its documents."""

    found: list[Requirement]
    broken: list[str]
    """What is wrong with each `final.json` that cannot be used."""
    coverage: Coverage
    rules: list[Rule]
    badly_read: dict[str, str]
    """Documents whose text is not what their pages show, each with what is wrong."""


def survey(files: Files, job: str, heartbeat: Callable[[], None]) -> Survey:
    """Read the requirements, and hold them against the text of the documents.

    Raises:
        Unusable: the rules by which sentences are set aside cannot be read.
    """
    found: list[Requirement] = []
    broken: list[str] = []
    listed = folder.listed(files)
    for name in sorted(listed, key=lambda name: (len(name), name)):
        heartbeat()
        try:
            found.append(folder.read(files, listed[name][0], name, job))
        except folder.Unusable as problem:
            broken.append(f"{problem}.")
    documents: dict[str, list[Page]] = {}
    badly_read: dict[str, str] = {}
    for path in inputs_in(files):
        try:
            reading = reading_in(files, path, heartbeat)
        except ToolError as error:
            badly_read[path] = str(error)
            continue
        documents[path] = reading.pages
        why = " ".join(reading.quality.warnings) if reading.quality.badly else ""
        if why := why or name_unread_pages(reading.pages).strip():
            badly_read[path] = why
    rules = read_rules(files)
    out_of_scope = {rule.document for rule in rules if rule.is_whole}
    return Survey(
        found,
        broken,
        measure_coverage(documents, found, rules, heartbeat),
        rules,
        {path: why for path, why in badly_read.items() if path not in out_of_scope},
    )


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
        now = survey(context.files, context.job, context.heartbeat)
    except folder.Unusable as problem:
        raise ToolError(f"{problem}.") from None
    for path, text in {
        REQUIREMENTS: as_json([each.content for each in now.found]),
        PAGES: as_pages(now.found, _set_aside(now)),
        UNCOVERED: _uncovered(now.coverage),
    }.items():
        context.files = context.files.write(path, text.encode())
    lines = [f"Wrote {_counted(len(now.found), 'requirement')} to {REQUIREMENTS} and {PAGES}."]
    if now.broken:
        lines += ["Left out, to be mended:", *_some(now.broken)]
    if now.found:
        lines.append(f"By force: {_tally(each.force for each in now.found)}.")
        lines.append(f"By type: {_tally(each.type for each in now.found)}.")
        lines += ["Pages cited:", *_some(_pages(now.found), MOST_DOCUMENTS)]
    return "\n".join([*lines, *_covered(now)])


@tool("validation", effect="outside", local=False, seconds=180)
def collect_decisions(context: ToolContext) -> str:
    """Write output/decisions.json from what the store has of the decisions of this job.

    Each with its reasons, what it is a duplicate of, and what it is related to in the graph.
    Answers with how many there are of each kind, what is accepted and not in the graph or related
    to nothing, what is in the graph and not accepted, and what is not decided. Call it again when
    something has changed.
    """
    writer = Writer.for_call(context)
    own = (context.job, *context.before)
    try:
        remarks = flush(writer, "relational")
        now = began()
        made, held, free = writer.store.read(lambda store: claims.decided(store, own, now))
    except StoreAway as error:
        raise Unreached(str(error)) from None
    accepted = [each.ref for each in made if each.status == "accepted"]
    known: dict[str, Place] | None = None
    try:
        if integrates(context):
            remarks += flush(writer, "graph")
            every = [each.ref for each in made]
            known = places(context.root, context.config.graph_schema, every, context.heartbeat)
    except (StoreAway, GraphAway) as error:
        remarks.append(f"What is in the graph is not told, since it does not answer: {error}")
    except GraphRefused as error:
        raise ToolError(f"The graph refused it: {error}") from None
    content = [_entry(each, known) for each in made]
    context.files = context.files.write(DECISIONS, as_json(content).encode())
    lines = [f"Wrote {_counted(len(made), 'decision')} to {DECISIONS}."]
    if made:
        lines.append(f"By verdict: {_tally(each.status for each in made)}.")
    if known is not None:
        lines += _named("Accepted and not in the graph", [r for r in accepted if r not in known])
        alone = [r for r in accepted if r in known and not known[r]]
        lines += _named("In the graph and related to nothing", alone)
        over = [each.ref for each in made if each.status != "accepted" and each.ref in known]
        lines += _named("Not accepted and still in the graph; decide on them again", over)
    lines += _named("Taken and not decided", held)
    lines.append(f"Drafts left to take: {free:,}.")
    return "\n".join([*lines, *remarks])


def _pages(found: list[Requirement]) -> list[str]:
    cited: dict[str, set[int]] = {}
    for citation in (each for made in found for each in made.citations):
        cited.setdefault(citation.document, set()).add(citation.page)
    return [
        f"- {document}: {', '.join(_some(list(map(str, sorted(pages))), MOST_PAGES))}"
        for document, pages in sorted(cited.items())
    ]


def _covered(now: Survey) -> list[str]:
    """How far the text is covered, in lines."""
    coverage = now.coverage
    aside = sum(coverage.aside.values())
    what = f"{_counted(coverage.total, 'sentence')} that say must, must not or should"
    if coverage.open:
        lines = [
            f"Not covered: {len(coverage.open):,} of {what} are neither cited nor set aside. "
            f"All of them, in {UNCOVERED}:",
            *_some([_told(*each) for each in coverage.open]),
        ]
    else:
        lines = [f"Covered: of {what} {coverage.cited:,} are cited and {aside:,} set aside."]
    lines += _set_aside(now)
    if coverage.weaker:
        lines.append(
            f"No citation touches {_counted(coverage.weaker, 'other candidate')}: permissions, and "
            "items of lists without a word of obligation."
        )
    lines += [
        f"Not read as it is, so that nothing is complete of it: {path}. {why}"
        for path, why in now.badly_read.items()
    ]
    return lines


def _set_aside(now: Survey) -> list[str]:
    """A line for each rule that sets sentences aside."""
    return [
        f"Set aside {count:,}: {now.rules[place].description}"
        for place, count in sorted(now.coverage.aside.items())
    ]


def _uncovered(coverage: Coverage) -> str:
    lines = ["# Sentences that nothing covers", ""]
    lines += [_told(document, each, None) for document, each in coverage.open] or ["None."]
    return "\n".join(lines) + "\n"


def _told(document: str, candidate: Candidate, most: int | None = 60) -> str:
    return f"- {document}: {listing.describe_candidate(candidate, most)}"


def _entry(each: claims.Decided, known: dict[str, Place] | None) -> dict[str, Any]:
    said = {
        "id": each.ref,
        "decision": each.status,
        "reasons": each.reasons,
        "duplicate_of": each.duplicate_of,
        "text": each.text,
    }
    if known is None or each.status != "accepted":
        return said
    return said | {"in_graph": each.ref in known, "related": known.get(each.ref, [])}


def _named(what: str, names: list[str]) -> list[str]:
    return [f"{what}: {', '.join(_some(names))}."] if names else []


def _some(entries: list[str], most: int = MOST_NAMED) -> list[str]:
    more = len(entries) - most
    return [*entries[:most], f"and {more:,} more"] if more > 0 else entries


def _tally(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(Counter(names).items()))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

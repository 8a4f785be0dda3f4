"""The results of the requirement agents, written from what the system has of them.

A model that writes sixty requirements down once more makes mistakes that nobody would see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from activities.graph.interface import GraphAway, GraphRefused
from activities.graph.places import Place, places
from activities.job.opening import began
from activities.plain import as_json
from activities.requirements import folder, listing
from activities.requirements.requirement import Requirement
from activities.stores import deciding
from activities.stores.away import StoreAway
from activities.stores.deferring import Writer, flush
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError, Unreached
from activities.toolkit.registry import tool
from activities.tools.validating import integrates

REQUIREMENTS = "output/requirements.json"
DECISIONS = "output/decisions.json"
MOST_DOCUMENTS = 30
MOST_PAGES = 60
MOST_NAMED = 60
_CANDIDATE = re.compile(r"C-\d+")


@tool("requirements", effect="writes", local=False, seconds=180)
def collect_requirements(context: ToolContext) -> str:
    """Write output/requirements.json from every requirements/req_NNN/final.json.

    Answers with what helps to verify it: how many of each type, the pages that are cited of each
    document, candidates to which no requirement refers, and what is wrong with a `final.json` that
    was left out. Call it again when one of them has changed.
    """
    found: list[Requirement] = []
    broken: list[str] = []
    listed = folder.listed(context.files)
    for name in sorted(listed, key=lambda name: (len(name), name)):
        context.heartbeat()
        try:
            found.append(folder.read(context.files, listed[name][0], name, context.job))
        except folder.Unusable as problem:
            broken.append(f"{problem}.")
    content = [each.model_dump(exclude={"job"}) for each in found]
    context.files = context.files.write(REQUIREMENTS, as_json(content).encode())
    lines = [f"Wrote {_counted(len(found), 'requirement')} to {REQUIREMENTS}."]
    if broken:
        lines += ["Left out, to be mended:", *_some(broken)]
    if found:
        lines.append(f"By type: {_tally(each.type for each in found)}.")
        lines += ["Pages cited:", *_some(_pages(found), MOST_DOCUMENTS)]
    return "\n".join([*lines, *_without(context, found)])


@tool("validation", effect="outside", local=False, seconds=180)
def collect_decisions(context: ToolContext) -> str:
    """Write output/decisions.json from what the store has of the decisions of this job.

    Each with its reasons, what it is a duplicate of, and what it is related to in the graph.
    Answers with how many there are of each kind, what is accepted and not in the graph or related
    to nothing, what is in the graph and not accepted, and what is not decided. Call it again when
    something has changed.
    """
    writer = Writer.of(context)
    own = (context.job, *context.before)
    try:
        remarks = flush(writer, "relational")
        now = began()
        made, held, free = writer.store.read(lambda store: deciding.decided(store, own, now))
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


def _without(context: ToolContext, found: list[Requirement]) -> list[str]:
    """The candidates to which no requirement refers."""
    try:
        documents = listing.read(context.files)
    except folder.Unusable as problem:
        return [f"Candidates were not compared: {problem}."]
    # Candidates are numbered in each document anew.
    referred = {
        (citation.document, name)
        for each in found
        for name in _CANDIDATE.findall(each.candidate or "")
        for citation in each.citations
    }
    every = [(each.document, candidate) for each in documents for candidate in each.candidates]
    left = [
        f"- {document}: {listing.told(candidate, 60)}"
        for document, candidate in every
        if (document, candidate.id) not in referred
    ]
    if not left:
        return [f"Every one of {_counted(len(every), 'candidate')} has a requirement."]
    count = f"{len(left):,} of {_counted(len(every), 'candidate')}"
    return [f"No requirement refers to {count}:", *_some(left)]


def _entry(each: deciding.Decided, known: dict[str, Place] | None) -> dict[str, Any]:
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

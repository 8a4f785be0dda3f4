"""How the rehearsal model validates requirements: by rules, whatever it is given."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from rehearsal.collection import check, collect
from rehearsal.plans import Plan, PlanPhase, counted, slug_of
from rehearsal.replay import CLEARED, Call, Steps, closing, insist, once
from rehearsal.request_view import failed
from rehearsal.tool_answers import list_paths, read_all

RESULT = "output/decisions.json"
COLLECT = "collect_decisions"
"""The tool that writes it."""
REPORT = "output/decisions.md"
"""Not summary.md: in a pipeline that is the creator's, in the same folder."""
PLACES = [f"- `{RESULT}`: what was decided, once it is collected; until then the store has it"]
ROUNDS = 8
"""Todos of one phase."""
A_ROUND = 8
"""Requirements of one todo."""
_UNDECIDED = "Taken and not decided: "
_NONE_LEFT = "Drafts left to take: 0."
_TAKEN = re.compile(r"^(\S+/REQ-\d+) \((\w+), confidence ([\d.]+), from (.*)\)$", re.MULTILINE)
_TEXT = re.compile(r"^Text: (.*?)^Reasoning: ", re.MULTILINE | re.DOTALL)
_CITED = re.compile(
    r"^- CIT-\d+: (\S.*?), page (\d+)(?: \(.*?\))?: (.*?)(?=^- CIT-|^Decide on it)",
    re.MULTILINE | re.DOTALL,
)
_ALIKE = re.compile(r"^([\d.]+) · duplicate · (\S+) · (\w+) · ", re.MULTILINE)
_ENTITY = re.compile(r"^(exact|[\d.]+): BusinessObject (\S+)", re.MULTILINE)
_CERTAIN = 0.8
_BORING = {
    *("shall", "should", "their", "there", "these", "those", "which", "about", "every", "before"),
    *("after", "other", "where", "being", "might", "could", "would", "without", "within"),
}


@dataclass(frozen=True)
class Taken:
    """A requirement as `take_requirement` tells it."""

    ref: str
    type: str
    confidence: float
    source: str
    text: str
    cited: tuple[str, int, str] | None
    """Document, page and quote of its first citation."""

    @property
    def thing(self) -> str:
        """The business object it speaks of: the longest of its words that is not everyday."""
        words = re.findall(r"[^\W\d_]{5,}", self.text)
        return max((w for w in words if w.lower() not in _BORING), key=len, default="Matter")


@dataclass(frozen=True)
class Decision:
    status: str
    reasons: str
    duplicate_of: str = ""
    before: tuple[Call, ...] = ()
    """Calls that make it so."""


def parse(result: str) -> Taken | None:
    """The requirement in a result of `take_requirement`."""
    head, text = _TAKEN.search(result), _TEXT.search(result)
    if not head or not text:
        return None
    cited = _CITED.search(result)
    return Taken(
        head[1], head[2], float(head[3].rstrip(".")), head[4], text[1].rstrip("\n"),
        (cited[1], int(cited[2]), cited[3].rstrip("\n")) if cited else None,
    )  # fmt: skip


def plan() -> Plan:
    head = (
        "# Plan\n\nTake the drafts of the store one by one, and decide on each.\n\n"
        "Two approaches were weighed: to judge all and then integrate, and to finish each before "
        "the next is taken.\nThe second is chosen: nothing is held longer than it must be."
    )
    output = [
        f"Write `{RESULT}` with `{COLLECT}`",
        f"Check `{RESULT}` for what is missing",
        "Note in `notes/rejected.md` what was rejected and why",
        "Note in `notes/method.md` by which rules was decided",
        f"Write the report `{REPORT}`",
    ]
    return Plan(head, [_rounds(1), PlanPhase("Output", "The decisions are told.", output)])


def grow(plan: Plan) -> Generator[list[Call], list[str], bool]:
    """Add a phase of rounds when the finished one left drafts in the store."""
    done = [phase for phase in plan.phases if phase.done]
    if not done or not done[-1].name.startswith("Validate"):
        return False
    told = yield from insist(COLLECT)
    # One that it could not decide on it would be given again and again.
    if failed(told) or _UNDECIDED in told or _NONE_LEFT in told:
        return False
    plan.phases.insert(len(done), _rounds(len(done) + 1))
    return True


def _rounds(number: int) -> PlanPhase:
    first = (number - 1) * ROUNDS + 1
    steps = [f"Validate the next requirements (round {first + n})" for n in range(ROUNDS)]
    return PlanPhase(f"Validate ({number})", "Each draft that was taken is decided.", steps)


def procedure(text: str) -> Steps | None:
    """The procedure for a tactical todo, or None when it is not about validation."""
    if text.startswith("Validate the next requirements"):
        return validate()
    if text.startswith(f"Write `{RESULT}`"):
        return collect(COLLECT)
    if text.startswith(f"Check `{RESULT}`"):
        return check(COLLECT)
    if text.startswith("Note in `notes/rejected.md`"):
        return rejected()
    if text.startswith(f"Write the report `{REPORT}`"):
        return report()
    return None


def validate() -> Steps:
    """Take and decide a few."""
    documents = yield from list_paths("documents")
    count = 0
    result = yield from once("take_requirement")
    while count < A_ROUND:
        if CLEARED in result:
            result = yield from once("take_requirement")
            continue  # of a requirement that was decided since
        taken = parse(result)
        if taken is None:
            break
        decision = yield from _judge(taken, documents)
        arguments = {"id": taken.ref, "status": decision.status, "reasons": decision.reasons}
        if decision.duplicate_of:
            arguments["duplicate_of"] = decision.duplicate_of
        calls: list[Call] = [*decision.before, ("decide_requirement", arguments)]
        more: list[Call] = [("take_requirement", {})] if count + 1 < A_ROUND else []
        *_, told, result = [*(yield [*calls, *more]), *([] if more else [""])]
        if failed(told):
            *_, told, result = [*(yield [*calls, *more]), *([] if more else [""])]
        if failed(told):
            return f"{taken.ref} could not be decided: {_short(told)}"
        count += 1
    return f"Decided on {counted(count, 'requirement')}."


def _judge(taken: Taken, documents: list[str]) -> Generator[list[Call], list[str], Decision]:
    calls: list[Call] = [
        ("assess_relevance", {"text": taken.text}),
        ("find_similar_requirements", {"text": taken.text}),
    ]
    if taken.cited and taken.cited[0] in documents:
        path, page, quote = taken.cited
        calls.append(("cite_document", {"path": path, "page": page, "quote": quote}))
    relevance, similar, *cited = yield calls
    if cited and failed(cited[0]):
        return Decision("rejected", f"Its source does not bear it out: {_short(cited[0])}")
    if ", not relevant (" in relevance:
        return Decision("rejected", _short(relevance))
    for found in _ALIKE.finditer(similar):
        likeness, other, status = found.groups()
        if status == "accepted" or other < taken.ref:
            reasons = f"{other} says the same, likeness {likeness}."
            return Decision("duplicate", reasons, other)
    return (yield from _integrate(taken, _short(relevance)))


def _integrate(taken: Taken, why: str) -> Generator[list[Call], list[str], Decision]:
    found = yield from once("resolve_entity", text=taken.thing, kind="BusinessObject")
    entity = _ENTITY.search(found)
    there = entity is not None and (entity[1] == "exact" or float(entity[1]) >= _CERTAIN)
    key = entity[2] if entity and there else slug_of(taken.thing)
    node = {
        "type": taken.type, "source": taken.source, "confidence": taken.confidence,
        "status": "accepted",
    }  # fmt: skip
    evidence = (
        f"{key} was in the graph; nothing there shows that it fulfils this."
        if there
        else f"Nothing in the graph was called {taken.thing}."
    )
    relation = {
        "requirement": taken.ref, "target_kind": "BusinessObject", "target": key,
        "target_name": taken.thing, "properties": {"degree": "none", "evidence": evidence},
    }  # fmt: skip
    made: Call = (
        "create_requirement_node", {"id": taken.ref, "text": taken.text, "properties": node},
    )  # fmt: skip
    before = (made, ("create_fulfillment_relationship", relation))
    return Decision("accepted", why, before=before)


def rejected() -> Steps:
    left = [
        f"- {each['id']}: {each['reasons']}"
        for each in (yield from _decided())
        if each["decision"] == "rejected"
    ]
    content = "\n".join(["# Rejected", "", *(left or ["Nothing."]), ""])
    note = f"Rejected: {counted(len(left), 'requirement')}."
    return (yield from closing(note, "write_file", path="notes/rejected.md", content=content))


def report() -> Steps:
    """`output/decisions.md`."""
    told = yield from insist(COLLECT)
    made = yield from _decided()
    counts = Counter(each["decision"] for each in made)
    done = (
        f"Of {counted(len(made), 'requirement')} taken, {counts['accepted']} were accepted and put "
        f"into the graph, {counts['rejected']} rejected and {counts['duplicate']} found to be "
        "duplicates."
        if made
        else "The store had no draft requirement for this job."
    )
    related = Counter(end["to"] for each in made for end in each.get("related", []) if "to" in end)
    things = [f"- {name}: {number}" for name, number in sorted(related.items())]
    open_ = [f"- {line}" for line in told.splitlines() if line.startswith(_UNDECIDED)]
    lines = ["# Summary", "", "## What was done", "", done, "", "## Related to", ""]
    lines += [*(things or ["- nothing"]), "", "## Left open", "", *(open_ or ["Nothing."]), ""]
    return (yield from closing(done, "write_file", path=REPORT, content="\n".join(lines)))


def _decided() -> Generator[list[Call], list[str], list[dict[str, Any]]]:
    text = "\n".join((yield from read_all(RESULT)))
    try:
        found: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError:
        return []  # more than it reads
    return found


def _short(text: str) -> str:
    return " ".join(text.split())[:600]

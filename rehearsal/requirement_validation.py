"""How the rehearsal model validates requirements by rules."""

import json
import re
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from protocol.short_text import count_noun
from rehearsal.procedure_replay import (
    CLEARED,
    Call,
    Steps,
    call_tool_with_retry,
    check_collected_results,
    collect_rehearsed_results,
    write_and_close,
)
from rehearsal.rehearsal_plan import RehearsalPlan, RehearsalPlanPhase, rehearsed_plan_slug
from rehearsal.request_view import RequestView, is_error_result
from rehearsal.tool_answers import read_file_from_tool_answers

RESULT = "output/decisions.json"
COLLECT = "collect_decisions"
"""The tool that writes the result."""
REPORT = "output/decisions.md"
"""Not summary.md: in a pipeline the creator's file of that name is in the same folder."""
PLACES = [f"- `{RESULT}`: what was decided, once it is collected; until then the store has it"]
ROUNDS = 5
"""Maximum number of todos of one phase."""
REQUIREMENTS_PER_ROUND = 10
"""Requirements taken at a time."""
TAKES = 12
"""How often one todo takes some at most."""
_UNDECIDED = "Taken and not decided: "
_NONE_LEFT = "Drafts left to take: 0."
_TAKEN = re.compile(r"^(\S+/REQ-\d+) \((\w+), confidence ([\d.]+), from (.*)\)$", re.MULTILINE)
_TEXT = re.compile(r"^Text: (.*?)^Reasoning: ", re.MULTILINE | re.DOTALL)
_CITED = re.compile(
    r"^- CIT-\d+: \S.*?, page \d+(?: \(.*?\))?( \[NOT FOUND there\])?: ", re.MULTILINE
)
_RELEVANCE = re.compile(r"^Relevance: (.*)$", re.MULTILINE)
_ALIKE = re.compile(r"^([\d.]+) · duplicate · (\S+) · (\w+) · ", re.MULTILINE)
_ENTITY = re.compile(r"^(exact|[\d.]+): BusinessObject (\S+)", re.MULTILINE)
_CERTAIN = 0.8
_COMMON_WORDS = {
    *("shall", "should", "their", "there", "these", "those", "which", "about", "every", "before"),
    *("after", "other", "where", "being", "might", "could", "would", "without", "within"),
}


@dataclass(frozen=True)
class RequirementToValidate:
    """A requirement as `take_requirement` shows it."""

    ref: str
    type: str
    confidence: float
    source: str
    text: str
    is_borne_out: bool
    """Whether its first citation stands where it says."""
    relevance: str
    like: tuple[tuple[str, str, str], ...]
    """Likeness, name and status of each duplicate."""

    @property
    def business_object(self) -> str:
        """The object it is about: its longest uncommon word."""
        words = re.findall(r"[^\W\d_]{5,}", self.text)
        return max((w for w in words if w.lower() not in _COMMON_WORDS), key=len, default="Matter")


@dataclass(frozen=True)
class Decision:
    status: str
    reasons: str
    duplicate_of: str = ""
    after: tuple[Call, ...] = ()


def parse_requirements_to_validate(result: str) -> list[RequirementToValidate]:
    """Parse the requirements in a result of `take_requirement`."""
    starts = [*(match.start() for match in _TAKEN.finditer(result)), len(result)]
    drafts = []
    for start, end in pairwise(starts):
        part = result[start:end]
        head, text, cited = _TAKEN.search(part), _TEXT.search(part), _CITED.search(part)
        relevance = _RELEVANCE.search(part)
        if head and text:
            drafts.append(
                RequirementToValidate(
                    head[1], head[2], float(head[3].rstrip(".")), head[4], text[1].rstrip("\n"),
                    cited is None or not cited[1], relevance[1] if relevance else "",
                    tuple(_ALIKE.findall(part)),
                )
            )  # fmt: skip
    return drafts


def plan_validation() -> RehearsalPlan:
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
    return RehearsalPlan(
        head,
        [
            _validation_rounds_phase(1),
            RehearsalPlanPhase("Output", "The decisions are listed.", output),
        ],
    )


def add_validation_rounds(plan: RehearsalPlan) -> Generator[list[Call], list[str], bool]:
    """Add a phase of rounds if the finished one left drafts in the store."""
    done = [phase for phase in plan.phases if phase.done]
    if not done or not done[-1].name.startswith("Validate"):
        return False
    if plan.open_phase and plan.open_phase.name.startswith("Validate"):
        return False
    collected = yield from call_tool_with_retry(COLLECT)
    # The store would return an undecidable requirement again and again.
    if is_error_result(collected) or _UNDECIDED in collected or _NONE_LEFT in collected:
        return False
    plan.phases.insert(len(done), _validation_rounds_phase(len(done) + 1))
    return True


def _validation_rounds_phase(number: int) -> RehearsalPlanPhase:
    first = (number - 1) * ROUNDS + 1
    steps = [f"Validate the next requirements (round {first + n})" for n in range(ROUNDS)]
    return RehearsalPlanPhase(
        f"Validate ({number})", "Each draft that was taken is decided.", steps
    )


def choose_validation_procedure(text: str) -> Steps | None:
    """Return the procedure for a tactical todo; None if it is not about validation."""
    if text.startswith("Validate the next requirements"):
        return validate_draft_requirements()
    if text.startswith(f"Write `{RESULT}`"):
        return collect_rehearsed_results(COLLECT)
    if text.startswith(f"Check `{RESULT}`"):
        return check_collected_results(COLLECT)
    if text.startswith("Note in `notes/rejected.md`"):
        return note_rejected_requirements()
    if text.startswith(f"Write the report `{REPORT}`"):
        return write_validation_report()
    return None


def validate_draft_requirements() -> Steps:
    """Take drafts and decide on them, some at a time."""
    take: Call = ("take_requirement", {"count": REQUIREMENTS_PER_ROUND})
    count = 0
    [result] = yield [take]
    for _ in range(TAKES):
        if CLEARED in result:
            [result] = yield [take]
        requirements = parse_requirements_to_validate(result)
        if not requirements:
            break
        calls, decided_at = yield from _decide_requirements(requirements)
        answers = yield [*calls, take]
        if any(is_error_result(answers[place]) for place in decided_at):
            answers = yield [*calls, take]
        for place, each in zip(decided_at, requirements, strict=True):
            if is_error_result(answers[place]):
                why = _shorten_decision_reason(answers[place])
                return f"{each.ref} could not be decided: {why}"
        count += len(requirements)
        result = answers[-1]
    return f"Decided on {count_noun(count, 'requirement')}."


def _decide_requirements(
    requirements: list[RequirementToValidate],
) -> Generator[list[Call], list[str], tuple[list[Call], list[int]]]:
    """Return the calls that integrate and decide, and the places of the decisions among them."""
    judged = [(each, _judge_requirement(each)) for each in requirements]
    accepted = [each for each, decision in judged if decision is None]
    entities: list[str] = []
    if accepted:
        entities = yield [
            ("resolve_entity", {"text": each.business_object, "kind": "BusinessObject"})
            for each in accepted
        ]
    by_ref = dict(zip([each.ref for each in accepted], entities, strict=True))
    calls: list[Call] = []
    decided_at = []
    for each, rejected in judged:
        decision = rejected or _rehearse_integration(each, by_ref[each.ref])
        arguments = {"id": each.ref, "status": decision.status, "reasons": decision.reasons}
        if decision.duplicate_of:
            arguments["duplicate_of"] = decision.duplicate_of
        decided_at.append(len(calls))
        calls += [("decide_requirement", arguments), *decision.after]
    return calls, decided_at


def _judge_requirement(requirement: RequirementToValidate) -> Decision | None:
    """Return why it is not accepted; None if it may be."""
    if not requirement.is_borne_out:
        return Decision("rejected", "Its source does not bear it out: the quote is not there.")
    if "not relevant" in requirement.relevance:
        return Decision("rejected", _shorten_decision_reason(requirement.relevance))
    for likeness, other, status in requirement.like:
        if status == "accepted" or other < requirement.ref:
            reasons = f"{other} says the same, likeness {likeness}."
            return Decision("duplicate", reasons, other)
    return None


def _rehearse_integration(requirement: RequirementToValidate, entities: str) -> Decision:
    entity = _ENTITY.search(entities)
    is_certain = entity is not None and (entity[1] == "exact" or float(entity[1]) >= _CERTAIN)
    key = entity[2] if entity and is_certain else rehearsed_plan_slug(requirement.business_object)
    evidence = (
        f"{key} was in the graph; nothing there shows that it fulfils this."
        if is_certain
        else f"Nothing in the graph was called {requirement.business_object}."
    )
    relation = {
        "requirement": requirement.ref,
        "target_kind": "BusinessObject",
        "target": key,
        "target_name": requirement.business_object,
        "properties": {"degree": "none", "evidence": evidence},
    }
    return Decision(
        "accepted",
        _shorten_decision_reason(requirement.relevance) or "It binds.",
        after=(("create_fulfillment_relationship", relation),),
    )


def note_rejected_requirements() -> Steps:
    lines = [
        f"- {each['id']}: {each['reasons']}"
        for each in (yield from _read_validation_decisions())
        if each["decision"] == "rejected"
    ]
    content = "\n".join(["# Rejected", "", *(lines or ["Nothing."]), ""])
    note = f"Rejected: {count_noun(len(lines), 'requirement')}."
    return (yield from write_and_close(note, "notes/rejected.md", content))


def write_validation_report() -> Steps:
    """Write `output/decisions.md`."""
    collected = yield from call_tool_with_retry(COLLECT)
    decisions = yield from _read_validation_decisions()
    counts = Counter(each["decision"] for each in decisions)
    done = (
        f"Of {count_noun(len(decisions), 'requirement')} taken, {counts['accepted']} were "
        "accepted and put "
        f"into the graph, {counts['rejected']} rejected and {counts['duplicate']} found to be "
        "duplicates."
        if decisions
        else "The store had no draft requirement for this job."
    )
    related = Counter(
        end["to"] for each in decisions for end in each.get("related", []) if "to" in end
    )
    things = [f"- {name}: {number}" for name, number in sorted(related.items())]
    open_ = [f"- {line}" for line in collected.splitlines() if line.startswith(_UNDECIDED)]
    lines = ["# Summary", "", "## What was done", "", done, "", "## Related to", ""]
    lines += [*(things or ["- nothing"]), "", "## Left open", "", *(open_ or ["Nothing."]), ""]
    return (yield from write_and_close(done, REPORT, "\n".join(lines)))


def _read_validation_decisions() -> Generator[list[Call], list[str], list[dict[str, Any]]]:
    text = "\n".join((yield from read_file_from_tool_answers(RESULT)))
    try:
        decisions: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError:
        return []  # more than it reads
    return decisions


def _shorten_decision_reason(text: str) -> str:
    return " ".join(text.split())[:600]


def is_validation_job(view: RequestView) -> bool:
    return view.agent == "validator" or "`take_requirement`" in view.opening

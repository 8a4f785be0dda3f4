"""The scope ledger: what the job owes, the steps of its plan, and the state of each.

An item is completed, dropped with a reason, or open. The system completes it, by work that it saw
(`protocol.evidence`); neither a box that the model ticks nor its word does. Workflow memory and
checkpoints both hold the ledger; activities report their changes, and the workflow copies them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.evidence import Evidence
from protocol.short_text import one_line

MAX_ITEMS = 2000
TEXT_CHARACTERS = 500
MAX_SCOPE_BYTES = 1_000_000
"""Most bytes of the texts and reasons of all items: the ledger must fit into one payload."""
SHORT_REASON = 40
"""Most characters of a reason once the ledger has reached that size."""
MAX_STEPS = 500
"""Most boxes of a plan, each of which is a step of the ledger."""
PAST_STEPS = 100
"""Most steps of each status without a box that are kept apart."""
STEP_CHARACTERS = 200
STATEMENT_CHARACTERS = 400
REWORDED_LIKENESS = 0.6
"""Least likeness of a box to the step of the same phase that it is a new wording of."""
CLOSELY_COMPARED = 3
"""Steps that a box is closely compared with."""
FEWEST_CHARACTERS = 6
_SAYS_NOTHING = (
    "done|done elsewhere|already done|not needed|no longer needed|not required|not relevant"
    "|not applicable|out of scope|not in scope|no reason|n a|will not do|won t do|skipped|see above"
    "|see notes|see summary|as above|not done|left open|is open|still open|to do|could not do"
    "|not possible|nicht nötig|nicht relevant|schon erledigt|bereits erledigt|siehe oben"
)
EMPTY_REASONS = frozenset(_SAYS_NOTHING.split("|"))
"""Reasons that say nothing about the item. Compared without case and punctuation."""
_WORD = re.compile(r"\w+")
_ID_RANGE = re.compile(
    r"(?<!\w)([SBAP])(\d{1,4})(?:\s?(?:-|–|—|\.\.|to|bis)\s?([SBAP]?)(\d{1,4}))?(?!\w)"  # noqa: RUF001
)
Box = tuple[bool, str]
"""A box of the plan: whether it is ticked, and its text."""
Verdict = Literal["", "met", "unmet", "cannot tell"]


class Statement(Data):
    """A sentence of the brief that binds, and what the acceptance review found."""

    text: str
    place: str = ""
    """`instructions.md:12`; empty for an item that a person listed."""
    paths: list[str] = Field(default_factory=list)
    """Files that it names as a result."""
    verdict: Verdict = ""
    """Empty before a review."""
    quote: str = ""
    """The words of the work, or of the brief, that the verdict rests on."""
    finding: str = ""
    """What is missing, for an unmet statement."""


class ScopeItem(Data):
    """One item that the job must cover, or one step of its plan."""

    id: str
    text: str
    status: Literal["open", "completed", "dropped"] = "open"
    source: Literal["given", "brief", "plan", "told", "added"] = "given"
    """Listed by a person (`S1`), a statement of the brief (`B1`), a box of the plan, which is a
    step and not scope (`P1`), or added later (`A1`): told by a person, or by the agent itself."""
    weight: int = 1
    """How many statements, or steps of earlier plans, it stands for."""
    reason: str = ""
    phase: int = 0
    """For a step: the position of its phase in the plan, from 1."""
    evidence: Evidence | None = None
    """Why it counts as completed."""
    statements: list[Statement] = Field(default_factory=list)
    """What it stands for. Stored in checkpoints, not in workflow memory."""

    @property
    def is_step(self) -> bool:
        return self.source == "plan"

    @property
    def is_unmet(self) -> bool:
        return self.status == "completed" and any(s.verdict == "unmet" for s in self.statements)

    @property
    def original(self) -> bool:
        """Whether the item is scope from the beginning; the original set never changes."""
        return self.source in ("given", "brief")

    @property
    def is_of_people(self) -> bool:
        """Whether a person asked for it, at the start or later."""
        return self.original or self.source == "told"

    @property
    def line(self) -> str:
        """`S2 (open): Cover water`."""
        return f"{self.id} ({self.status}): {self.text}"

    @property
    def slim(self) -> "ScopeItem":
        """The item as workflow memory has it."""
        evidence = self.evidence.slim if self.evidence else None
        return self.model_copy(update={"statements": [], "evidence": evidence})


def scope_from_texts(texts: Sequence[str], first: int = 1) -> list[ScopeItem]:
    return [
        listed_item(f"S{n}", one_line(text, TEXT_CHARACTERS), "given")
        for n, text in enumerate(texts, first)
    ]


def listed_item(id: str, text: str, source: Literal["given", "told", "added"]) -> ScopeItem:
    statement = Statement(text=one_line(text, STATEMENT_CHARACTERS))
    return ScopeItem(id=id, text=text, source=source, statements=[statement])


def scope_size_fault(items: Sequence[ScopeItem]) -> str | None:
    """Why these items are too many or too long for one payload; None when they are not."""
    if len(items) > MAX_ITEMS:
        return f"the scope has {len(items):,} items; at most {MAX_ITEMS:,} can be kept account of"
    if (size := scope_bytes(items)) > MAX_SCOPE_BYTES:
        return f"the items of the scope have {size:,} bytes; at most {MAX_SCOPE_BYTES:,} are taken"
    return None


def scope_bytes(items: Sequence[ScopeItem]) -> int:
    return sum(len((item.text + item.reason).encode()) for item in items)


def expand_item_ids(text: str) -> list[str]:
    """The ids of items that a text names, each once and in order; `B2-B5` names four."""
    ids = list[str]()
    for match in _ID_RANGE.finditer(text):
        letter, first, other, last = match.groups()
        same = bool(last) and other in ("", letter)
        end = min(int(last), int(first) + MAX_ITEMS) if same else int(first)
        ids += [f"{letter}{number}" for number in range(int(first), end + 1)]
        if last and not same:
            ids.append(f"{other}{int(last)}")
    return list(dict.fromkeys(ids))


def named_item_ids(text: str, known: Iterable[str]) -> list[str]:
    ids = set(known)
    return [id_ for id_ in expand_item_ids(text) if id_ in ids]


def is_empty_reason(reason: str, text: str = "") -> bool:
    """Whether a reason says nothing: no words, a phrase that fits all, or the item's own text."""
    words = _WORD.findall(reason.replace(text, " ") if text else reason)
    said = " ".join(words).casefold().replace("_", " ").strip()
    # Some scripts write without spaces.
    worded = len([word for word in words if len(word) > 1]) >= 2 or (
        len(said) >= FEWEST_CHARACTERS and not said.isascii()
    )
    return not worded or said in EMPTY_REASONS


def sync_plan_steps(
    items: Sequence[ScopeItem], boxes: Sequence[tuple[int, str]]
) -> list[ScopeItem]:
    """The ledger with a step for each box of the plan.

    A box is the step with its text, else the open step that it words anew, of its own phase before
    those of others, else a new one. An open step whose words are all in a new box is part of that
    box. Any other step without a box stays as it is: it is still owed until it is covered or
    dropped.

    Args:
        boxes: For each box the position of its phase and its text, in order.
    """
    steps = [item.model_copy() for item in items if item.is_step]
    unmatched = list(steps)
    new: list[tuple[int, str]] = []
    for phase, text in ((number, one_line(text, STEP_CHARACTERS)) for number, text in boxes):
        alike = sorted(
            (step for step in unmatched if step.text == text), key=lambda step: step.phase != phase
        )
        if alike:
            step = alike[0]
            step.phase = phase
            unmatched.remove(step)
        else:
            new.append((phase, text))
    number = max((int(step.id[1:]) for step in steps), default=0)
    fresh = list[ScopeItem]()
    for phase, text in new:
        if reworded := _reworded_step(unmatched, phase, text):
            reworded.text, reworded.phase = text, phase
            unmatched.remove(reworded)
            fresh.append(reworded)
            continue
        number += 1
        fresh.append(ScopeItem(id=f"P{number}", text=text, source="plan", phase=phase))
        steps.append(fresh[-1])
    _join_steps([step for step in unmatched if step.status == "open"], fresh)
    return [*(item for item in items if not item.is_step), *steps]


def _join_steps(steps: Sequence[ScopeItem], boxes: Sequence[ScopeItem]) -> None:
    """Close the steps of which new boxes have all words: several became one."""
    worded = [(box, set(_WORD.findall(box.text.casefold()))) for box in boxes]
    for step in steps:
        words = set(_WORD.findall(step.text.casefold()))
        into = next((box for box, has in worded if len(words) > 1 and words <= has), None)
        if into:
            step.status, step.reason = "dropped", f"part of {into.id}"


def fold_past_steps(
    items: Sequence[ScopeItem], boxes: Sequence[tuple[int, str]]
) -> list[ScopeItem]:
    """The ledger in which of the steps without a box only the newest stand for themselves.

    The older ones of each status are one step, the last of them, whose weight counts them: what
    was open among them is owed as a whole.
    """
    shown = {one_line(text, STEP_CHARACTERS) for _, text in boxes}
    gone = [item for item in items if item.is_step and item.text not in shown]
    left_out = set[str]()
    folded = dict[str, ScopeItem]()
    for status in ("completed", "dropped", "open"):
        past = [item for item in gone if item.status == status][:-PAST_STEPS]
        if len(past) > 1:
            weight = sum(item.weight for item in past)
            text = f"{weight} steps of earlier plans, up to {past[-1].id}"
            folded[past[-1].id] = past[-1].model_copy(update={"text": text, "weight": weight})
            left_out |= {item.id for item in past[:-1]}
    return [folded.get(item.id, item) for item in items if item.id not in left_out]


def _reworded_step(steps: Sequence[ScopeItem], phase: int, text: str) -> ScopeItem | None:
    """The open step that the text is a new wording of, of its phase if there is one."""
    pairs = _letter_pairs(text)

    def likeness(step: ScopeItem) -> float:
        return SequenceMatcher(None, step.text.casefold(), text.casefold()).ratio()

    def shared(step: ScopeItem) -> float:
        others = _letter_pairs(step.text)
        return len(pairs & others) / max(1, len(pairs) + len(others))

    still_owed = [step for step in steps if step.status == "open"]
    for alike in (
        [step for step in still_owed if step.phase == phase],
        [step for step in still_owed if step.phase != phase],
    ):
        best = max(nlargest(CLOSELY_COMPARED, alike, key=shared), key=likeness, default=None)
        if best and likeness(best) >= REWORDED_LIKENESS:
            return best
    return None


@lru_cache(maxsize=2 * MAX_STEPS)
def _letter_pairs(text: str) -> frozenset[str]:
    """The pairs of neighbouring letters of a text, by which the few steps are found that are worth
    a close comparison: a plan of many boxes written anew compares each box with each step.
    """
    return frozenset(map("".join, pairwise(text.casefold())))


def vanished_steps(items: Sequence[ScopeItem], boxes: Sequence[tuple[int, str]]) -> list[ScopeItem]:
    """The open steps that no box of the plan stands for any more, be it in other words."""
    shown = Counter(one_line(text, STEP_CHARACTERS) for _, text in boxes)
    vanished = []
    for item in sorted(sync_plan_steps(items, boxes), key=lambda item: item.status == "open"):
        if not item.is_step:
            continue
        if shown[item.text] > 0:
            shown[item.text] -= 1
        elif item.status == "open":
            vanished.append(item)
    return vanished


def scope_counts(items: Sequence[ScopeItem]) -> dict[str, int]:
    """Counts of the ledger's items; `completed` counts original items only, steps are apart."""
    scope = [item for item in items if not item.is_step]
    steps = [item for item in items if item.is_step]
    return {
        "original": sum(item.original for item in scope),
        "completed": sum(item.original and item.status == "completed" for item in scope),
        "added": sum(not item.original for item in scope),
        "dropped": sum(item.status == "dropped" for item in scope),
        "open": sum(item.status == "open" for item in scope),
        "steps": sum(item.weight for item in steps),
        "steps_completed": sum(item.weight for item in steps if item.status == "completed"),
    }


def scope_ledger_line(items: Sequence[ScopeItem]) -> str:
    """`3 of 5 items completed; of 1 added 0; dropped 1`; of the plan without any items."""
    counts = scope_counts(items)
    if not counts["original"] and counts["steps"]:
        text = f"{counts['steps_completed']} of {counts['steps']} steps done"
    else:
        text = f"{counts['completed']} of {counts['original']} items completed"
    if counts["added"]:
        done = sum(i.source in ("told", "added") and i.status == "completed" for i in items)
        text += f"; of {counts['added']} added {done}"
    if counts["dropped"]:
        text += f"; dropped {counts['dropped']}"
    return text

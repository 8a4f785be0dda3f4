"""The scope ledger: the items that the job must cover, and the state of each.

An item is completed, dropped with a reason, or open. Workflow memory and checkpoints both hold the
ledger; activities report their changes, and the workflow copies them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from protocol.data_model import Data
from protocol.short_text import one_line

MAX_ITEMS = 2000
TEXT_CHARACTERS = 500
MAX_SCOPE_BYTES = 1_000_000
"""Most bytes of the texts and reasons of all items: the ledger must fit into one payload."""
SHORT_REASON = 40
"""Most characters of a reason once the ledger has reached that size."""
MAX_STEPS = 500
"""Most boxes of a first plan whose boxes become the items."""
STEP_CHARACTERS = 200
Box = tuple[bool, str]
"""A box of the plan: whether it is ticked, and its text."""


class ScopeItem(Data):
    """One item that the job must cover."""

    id: str
    text: str
    status: Literal["open", "completed", "dropped"] = "open"
    source: Literal["given", "plan", "added"] = "given"
    """From the start input or instructions, from the first plan's boxes, or added later."""
    reason: str = ""
    """Why it was dropped."""

    @property
    def original(self) -> bool:
        """Whether the item is original rather than added later; the original set never changes."""
        return self.source != "added"

    @property
    def line(self) -> str:
        """`S2 (open): Cover water`."""
        return f"{self.id} ({self.status}): {self.text}"


def scope_from_texts(texts: Sequence[str], first: int = 1) -> list[ScopeItem]:
    """The items listed by a start or its instructions, numbered from `first`."""
    return [
        ScopeItem(id=f"S{n}", text=one_line(text, TEXT_CHARACTERS))
        for n, text in enumerate(texts, first)
    ]


def scope_size_fault(items: Sequence[ScopeItem]) -> str | None:
    """Why these items are too many or too long for one payload; None when they are not."""
    if len(items) > MAX_ITEMS:
        return f"the scope has {len(items):,} items; at most {MAX_ITEMS:,} can be kept account of"
    if (size := scope_bytes(items)) > MAX_SCOPE_BYTES:
        return f"the items of the scope have {size:,} bytes; at most {MAX_SCOPE_BYTES:,} are taken"
    return None


def scope_from_plan(boxes: Sequence[Box]) -> list[ScopeItem]:
    """The ledger of a job without given items: the boxes of its first plan."""
    items = [
        ScopeItem(id=f"P{n}", text=one_line(text, STEP_CHARACTERS), source="plan")
        for n, (_, text) in enumerate(boxes, 1)
    ]
    complete_ticked_scope_items(items, boxes)
    return items


def complete_ticked_scope_items(items: Sequence[ScopeItem], boxes: Sequence[Box]) -> None:
    """Complete the items whose box is now ticked.

    An item from the plan matches the box with its text, an added item the box that begins with its
    id. An item without a matching box stays open. Each of several boxes with the same text counts
    for one item.
    """
    ticked = Counter(one_line(text, STEP_CHARACTERS) for done, text in boxes if done)
    named = {id_ for done, text in boxes if done and (id_ := scope_id_of_box(text))}
    for item in items:
        if item.source == "plan" and ticked[item.text] > 0:
            ticked[item.text] -= 1
            if item.status == "open":
                item.status = "completed"
        elif item.source == "added" and item.id in named and item.status == "open":
            item.status = "completed"


def scope_id_of_box(text: str) -> str:
    """The id of an added item, such as `A1`, that begins a box's text; empty without one."""
    word = text.lstrip("`*_[( ").partition(" ")[0].rstrip("`*_])(:.,;")
    return word if word[:1] == "A" and word[1:].isdecimal() else ""


def is_scope_only_unticked(items: Sequence[ScopeItem], boxes: Sequence[Box]) -> bool:
    """Whether there are open boxes and each belongs to a completed item."""
    done = Counter(i.text for i in items if i.source == "plan" and i.status == "completed")
    done -= Counter(one_line(text, STEP_CHARACTERS) for ticked, text in boxes if ticked)
    unticked = Counter(one_line(text, STEP_CHARACTERS) for ticked, text in boxes if not ticked)
    return bool(unticked) and unticked <= done


def scope_counts(items: Sequence[ScopeItem]) -> dict[str, int]:
    """Counts of the ledger's items; `completed` counts original items only."""
    return {
        "original": sum(item.original for item in items),
        "completed": sum(item.original and item.status == "completed" for item in items),
        "added": sum(not item.original for item in items),
        "dropped": sum(item.status == "dropped" for item in items),
        "open": sum(item.status == "open" for item in items),
    }


def scope_ledger_line(items: Sequence[ScopeItem]) -> str:
    """`3 of 5 items completed; of 1 added 0; dropped 1`, for the model and for people."""
    counts = scope_counts(items)
    text = f"{counts['completed']} of {counts['original']} items completed"
    if counts["added"]:
        done = sum(not item.original and item.status == "completed" for item in items)
        text += f"; of {counts['added']} added {done}"
    if counts["dropped"]:
        text += f"; dropped {counts['dropped']}"
    return text


def scope_bytes(items: Sequence[ScopeItem]) -> int:
    """Bytes of the texts and reasons of a ledger."""
    return sum(len((item.text + item.reason).encode()) for item in items)

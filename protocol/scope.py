"""The scope ledger: what the job was asked to cover, and what became of each item.

An item is completed, or dropped with a reason, or open. Workflow memory and checkpoints both keep
the ledger; what an activity changes of it is reported and taken over as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from protocol.state import (
    MAX_ITEMS,
    MAX_SCOPE_BYTES,
    TEXT_CHARACTERS,
    ScopeItem,
    scope_bytes,
)
from protocol.text import one_line

MAX_STEPS = 500
"""Boxes that a first plan may have where they become the items."""
STEP_CHARACTERS = 200
Box = tuple[bool, str]
"""A box of the plan: whether it is ticked, and its text."""


def given_items(texts: Sequence[str], first: int = 1) -> list[ScopeItem]:
    """The items that a start or its instructions list, numbered from there on."""
    return [
        ScopeItem(id=f"S{n}", text=one_line(text, TEXT_CHARACTERS))
        for n, text in enumerate(texts, first)
    ]


def too_large(items: Sequence[ScopeItem]) -> str | None:
    """Why these are more than what begins with them can carry along, or None."""
    if len(items) > MAX_ITEMS:
        return f"the scope has {len(items):,} items; at most {MAX_ITEMS:,} can be kept account of"
    if (size := scope_bytes(items)) > MAX_SCOPE_BYTES:
        return f"the items of the scope have {size:,} bytes; at most {MAX_SCOPE_BYTES:,} are taken"
    return None


def plan_items(boxes: Sequence[Box]) -> list[ScopeItem]:
    """The ledger of a job that has none: the boxes of its first plan."""
    items = [
        ScopeItem(id=f"P{n}", text=one_line(text, STEP_CHARACTERS), source="plan")
        for n, (_, text) in enumerate(boxes, 1)
    ]
    follow_boxes(items, boxes)
    return items


def follow_boxes(items: Sequence[ScopeItem], boxes: Sequence[Box]) -> None:
    """Complete the items whose box is ticked now.

    An item from the plan has the box with its text, an added one the box that begins with its id.
    A box that is gone, or says something else, leaves its item open. Of boxes with the same text
    each counts for one item.
    """
    ticked = Counter(one_line(text, STEP_CHARACTERS) for done, text in boxes if done)
    named = {id_ for done, text in boxes if done and (id_ := id_of_box(text))}
    for item in items:
        if item.source == "plan" and ticked[item.text] > 0:
            ticked[item.text] -= 1
            if item.status == "open":
                item.status = "completed"
        elif item.source == "added" and item.id in named and item.status == "open":
            item.status = "completed"


def id_of_box(text: str) -> str:
    """The id of an added item that the text of a box begins with, such as `A1`; else nothing."""
    word = text.lstrip("`*_[( ").partition(" ")[0].rstrip("`*_])(:.,;")
    return word if word[:1] == "A" and word[1:].isdecimal() else ""


def only_unticked(items: Sequence[ScopeItem], boxes: Sequence[Box]) -> bool:
    """Whether there are open boxes, and each is that of an item which is completed."""
    done = Counter(i.text for i in items if i.source == "plan" and i.status == "completed")
    done -= Counter(one_line(text, STEP_CHARACTERS) for ticked, text in boxes if ticked)
    unticked = Counter(one_line(text, STEP_CHARACTERS) for ticked, text in boxes if not ticked)
    return bool(unticked) and unticked <= done


def scope_counts(items: Sequence[ScopeItem]) -> dict[str, int]:
    """The ledger in figures; `completed` of the original items."""
    return {
        "original": sum(item.original for item in items),
        "completed": sum(item.original and item.status == "completed" for item in items),
        "added": sum(not item.original for item in items),
        "dropped": sum(item.status == "dropped" for item in items),
        "open": sum(item.status == "open" for item in items),
    }


def scope_line(items: Sequence[ScopeItem]) -> str:
    """`3 of 5 items completed; of 1 added 0; dropped 1`: for the model, and for people."""
    counts = scope_counts(items)
    text = f"{counts['completed']} of {counts['original']} items completed"
    if counts["added"]:
        done = sum(not item.original and item.status == "completed" for item in items)
        text += f"; of {counts['added']} added {done}"
    if counts["dropped"]:
        text += f"; dropped {counts['dropped']}"
    return text

"""Where the plan places what the job owes: which phase stands for which item."""

import re
from collections.abc import Sequence

from activities.job.plan_and_todo_files import PlanPhase, parse_plan, plan_section
from activities.text.instructing import says_manner
from protocol.scope_ledger import ScopeItem, Statement, named_item_ids
from protocol.todo_list import TodoEntry

SHARED_WORDS = 0.7
"""Share of an item's words that the section of a phase has to have to stand for it."""
FEWEST_WORDS = 3
"""An item of fewer words stands only where all of them do."""
_WORD = re.compile(r"\w{4,}")
_PHASE_NUMBER = re.compile(r"\bphase\s+(\d+)", re.IGNORECASE)


def place_items(items: Sequence[ScopeItem], plan: str) -> dict[str, set[int]]:
    """Return for each item of the scope the positions, from 1, of the phases that stand for it.

    A phase stands for the items whose ids its section names, alone or as a range, for those whose
    file it names, and for those whose words it has. A single item is the work of every phase, and
    so is one that only says how the work is to be done.
    """
    scope = [item for item in items if not item.is_step]
    positions = range(1, len(parse_plan(plan)) + 1)
    if len([item for item in scope if item.original]) == 1 and len(scope) == 1:
        return {scope[0].id: set(positions)}
    places: dict[str, set[int]] = {item.id: set() for item in scope}
    for item in scope:
        statements = item.statements or [Statement(text=item.text)]
        if all(not each.paths and says_manner(each.text) for each in statements):
            places[item.id] = set(positions)
    for position in positions:
        section = plan_section(plan, position)
        named, words = set(named_item_ids(section, places)), _content_words(section)
        for item in scope:
            if item.id in named or _is_worded(item, section, words):
                places[item.id].add(position)
    return places


def unplaced_items(
    items: Sequence[ScopeItem], plan: str, todos: Sequence[TodoEntry]
) -> list[ScopeItem]:
    places = place_items(items, plan)
    by_todos = {name for todo in todos for name in todo.items}
    return [
        item
        for item in items
        if item.is_of_people
        and item.status == "open"
        and not places[item.id]
        and item.id not in by_todos
    ]


def handed_over_position(phases: Sequence[PlanPhase], name: str) -> int:
    """Return the position, from 1, of the phase that a list stands for: the one that its name says,
    else the first open one; the number of phases when none is open.
    """
    if match := _PHASE_NUMBER.search(name):
        for position, phase in enumerate(phases, 1):
            if phase.number == int(match.group(1)) and phase.is_open:
                return position
    said = name.strip().casefold()
    for is_same in (str.__eq__, _begins_alike):
        for position, phase in enumerate(phases, 1):
            if said and phase.is_open and is_same(phase.name.casefold(), said):
                return position
    return next((n for n, phase in enumerate(phases, 1) if phase.is_open), len(phases))


def _begins_alike(first: str, other: str) -> bool:
    """Return whether one name is the beginning of the other, such as "Brew" of "Brew, B2-B3"."""
    short, long = sorted((first, other), key=len)
    return long.startswith(short) and not long[len(short) : len(short) + 1].isalnum()


def covered_by_list(
    items: Sequence[ScopeItem], plan: str, position: int
) -> tuple[list[str], list[str]]:
    """Return the ids of what a list for the phase at this position stands for: the phase's steps
    and the open items placed there; and those of them that another open phase stands for as well.
    """
    phases = parse_plan(plan)
    if not 0 < position <= len(phases):
        return [], []
    others = {n for n, phase in enumerate(phases, 1) if phase.is_open and n != position}
    places = place_items(items, plan)
    covered = [
        item.id
        for item in items
        if item.status == "open"
        and (item.phase == position if item.is_step else position in places[item.id])
    ]
    return covered, [id_ for id_ in covered if places.get(id_, set()) & others]


def waiting_items(items: Sequence[ScopeItem], plan: str) -> set[str]:
    """Return the ids of the items that an open phase of the plan stands for."""
    open_positions = {n for n, phase in enumerate(parse_plan(plan), 1) if phase.is_open}
    return {
        id_ for id_, positions in place_items(items, plan).items() if positions & open_positions
    }


def _is_worded(item: ScopeItem, section: str, words: set[str]) -> bool:
    """Whether a section names the item's file or has its words."""
    if any(path in section for statement in item.statements for path in statement.paths):
        return True
    item_words, numbers = _content_words(item.text), set(re.findall(r"\d+", item.text))
    if not numbers <= set(re.findall(r"\d+", section)):
        return False
    least = SHARED_WORDS if len(item_words) >= FEWEST_WORDS else 1
    return bool(item_words) and len(item_words & words) >= least * len(item_words)


def _content_words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))

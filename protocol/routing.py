"""Pure functions that check whether a manager's division of the scope is complete.

The manager's completion gate runs them, so that the manager can correct its answer. The project
runs them again before it accepts the answer.
"""

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from protocol.agent_reports import Routing
from protocol.data_model import Data
from protocol.scope_ledger import is_empty_reason
from protocol.short_text import first_few

MOST_NAMED = 10


class RoutingFrame(Data):
    required: list[str] = Field(default_factory=list)
    """Ids of the items that must now be in a group or dropped with a reason."""
    optional: list[str] = Field(default_factory=list)
    """Ids of items of blocked groups; another group may take them."""
    accepted: list[str] = Field(default_factory=list)
    """Ids of items of accepted groups; they may be worked on again."""
    groups: list[str] = Field(default_factory=list)
    live: list[str] = Field(default_factory=list)
    """Ids of the groups that are neither completed nor blocked."""
    room: int = 1_000_000
    """Bytes that the project has left for further groups."""


def routing_problems(routing: Routing, frame: RoutingFrame) -> list[str]:
    problems: list[str] = []
    ids = [group.id for group in routing.groups]
    if twice := [*_duplicate_routing_ids(ids), *(id_ for id_ in ids if id_ in frame.groups)]:
        problems.append(
            f"Each group needs an id of its own; these are taken: {_routing_id_list(twice)}."
        )
    known = {*frame.groups, *ids}
    if strange := sorted({a for group in routing.groups for a in group.after if a not in known}):
        problems.append(f"`after` names groups that do not exist: {_routing_id_list(strange)}.")
    if circle := _find_routing_cycle(routing):
        problems.append(f"These groups wait for one another: {_routing_id_list(circle)}.")

    named = [item for group in routing.groups for item in group.items]
    named += [item.id for item in routing.drop]
    if twice := _duplicate_routing_ids(named):
        problems.append(f"These items are named more than once: {_routing_id_list(twice)}.")
    open_ids = {*frame.required, *frame.optional}
    may = {*open_ids, *frame.accepted}
    if strange := sorted({item for item in named if item not in may}):
        problems.append(
            f"These items are not in the scope, or are in work: {_routing_id_list(strange)}."
        )
    if bare := [item.id for item in routing.drop if is_empty_reason(item.reason)]:
        problems.append(
            f"These items are dropped without a reason: {_routing_id_list(bare)}. Say in words why "
            "each must not be done."
        )
    if done := [item.id for item in routing.drop if item.id in may - open_ids]:
        problems.append(f"These items are done and cannot be dropped: {_routing_id_list(done)}.")
    if missing := [item for item in frame.required if item not in set(named)]:
        problems.append(
            f"These items are in no group: {_routing_id_list(missing)}. Every item is in "
            "exactly one group, "
            "or under `drop` with a reason."
        )
    size = sum(len(group.model_dump_json().encode()) for group in routing.groups)
    if size > frame.room:
        problems.append(
            f"The groups have {size:,} bytes, and the project has room for {frame.room:,} more: "
            "name fewer groups, or give them shorter titles and tasks."
        )
    if routing.complete and routing.groups:
        problems.append("`complete` cannot be true while there are groups to be worked on.")
    if routing.complete and frame.live:
        problems.append(
            "`complete` cannot be true: neither accepted nor blocked: "
            f"{_routing_id_list(frame.live)}."
        )
    if not (frame.groups or routing.groups):
        problems.append(
            "Nothing has been worked on yet, so that neither `complete` nor dropping every item "
            "can be accepted: name the groups that are to work on it."
        )
    elif not (routing.complete or routing.groups or frame.live):
        problems.append("Name the groups to be worked on next, or say `complete: true`.")
    return problems


def _duplicate_routing_ids(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _find_routing_cycle(routing: Routing) -> list[str]:
    """Groups that can never begin, because of a cycle in `after`."""
    waiting = {group.id: set(group.after) for group in routing.groups}
    while free := [id_ for id_, after in waiting.items() if not after & waiting.keys()]:
        for id_ in free:
            del waiting[id_]
    return list(waiting)


def _routing_id_list(names: Sequence[str]) -> str:
    return first_few(names, MOST_NAMED)

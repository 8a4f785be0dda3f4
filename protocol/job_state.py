"""The state of a job: the content of a checkpoint's `state.json` and the basis of the workflow.

Workflow and activities change it by the same methods. So the copy in workflow memory and the one
in the checkpoint are equal after every step, except for fields that only checkpoints keep. Money
and tokens are not here, because a rewind does not return them (see `protocol.job_record`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from protocol.data_model import Data
from protocol.phase import Phase
from protocol.scope_ledger import (
    MAX_ITEMS,
    MAX_SCOPE_BYTES,
    SHORT_REASON,
    TEXT_CHARACTERS,
    ScopeItem,
    scope_bytes,
)
from protocol.short_text import one_line
from protocol.todo_list import Todo


class Remark(Data):
    """A person's remark to the working agent; it applies until the job ends."""

    text: str
    by: str = ""
    phase: int = 0

    @property
    def line(self) -> str:
        """`From ada@host in phase 2: Use metric units.`"""
        where = f" in phase {self.phase}" if self.phase else ""
        return f"From {self.by or 'a person'}{where}: {self.text.strip()}"


class DeferredWrite(Data):
    """A write to be repeated once a shared store answers again."""

    kind: str
    """Selects the code that performs the write (`activities.stores.outbox`)."""
    key: str
    """Idempotency key of its call."""
    at: int
    """Time at which its call was scheduled, epoch milliseconds."""
    about: str = ""
    """Subject of the write: the name of a requirement."""
    data: dict[str, Any] = Field(default_factory=dict)


class UsedSkill(Data):
    """A skill whose body the model has loaded."""

    name: str
    todo: int
    """Id of the todo that needed it."""
    message: int
    """Number of the message with the body."""


class ShownImage(Data):
    """An image shown by a result; a message after the reply's results contains it."""

    pointer: str
    """Description in words; after a compaction only this remains."""
    blob: str
    """Hex id of the blob in the checkpoint's `images/`."""
    mime: str
    tokens: int


class JobState(Data):
    """Everything that a rewind restores, besides the job's files."""

    step: int = 0
    """Model calls so far; never goes down."""
    rewinds: int = 0
    phase: Phase
    scope: list[ScopeItem] = Field(default_factory=list)
    found_tools: list[str] = Field(default_factory=list)
    """Deferred tools that searches returned in this phase, in that order. Stored in checkpoints,
    not in workflow memory."""
    used_skills: list[UsedSkill] = Field(default_factory=list)
    """Skills used in this phase. Stored in checkpoints, not in workflow memory."""
    images: list[ShownImage] = Field(default_factory=list)
    """Images of the newest reply, until all its calls have results. Stored in checkpoints, not in
    workflow memory."""
    unused_tools: list[str] = Field(default_factory=list)
    """Tools that this phase does not offer because the job cannot use them. Stored in checkpoints,
    not in workflow memory."""
    issue: str = ""
    """Problem of the last attempt, until a phase of work is completed. Stored in checkpoints, not
    in workflow memory."""
    review_findings: str = ""
    """What the last review that came to a verdict sent the job back for. Stored in checkpoints, not
    in workflow memory."""
    remarks: list[Remark] = Field(default_factory=list)
    """Remarks of people, oldest first. A rewind does not remove them."""
    token_ratio: float = 1.0
    """Tokens of a request by the endpoint's count for one by ours, which it corrects. Stored in
    checkpoints, not in workflow memory."""
    deferred_writes: list[DeferredWrite] = Field(default_factory=list)
    """Pending writes to shared stores. Stored in checkpoints, not in workflow memory."""
    last_requirement: int = 0
    """Highest number of a requirement so far. It never goes down, so that no id is given twice.
    Stored in checkpoints, not in workflow memory."""

    def complete_todo(self, todo_id: int, notes: str = "") -> None:
        """Complete a todo, and the scope items that no open todo covers any more."""
        for todo in self.phase.todos:
            if todo.id == todo_id:
                covered = self.covered_by(todo)
                todo.done = True
                todo.notes = notes
                self._complete_items(covered)

    def covered_by(self, todo: Todo) -> list[str]:
        """The scope items that a todo covers: those it names, else the next open one.

        Only a plan's todos cover items that they do not name, and only given items: an item from
        the plan is completed by its box. If an open todo names the next item, that item stays open
        until then: no later item is completed in its place.
        """
        if todo.items or self.phase.purpose != "work":
            return todo.items
        following = (
            item.id for item in self.scope if item.status == "open" and item.source == "given"
        )
        return list(following)[:1]

    def _complete_items(self, ids: Sequence[str]) -> None:
        pending = {item for todo in self.phase.todos if not todo.done for item in todo.items}
        for item in self.scope:
            if item.id in ids and item.id not in pending and item.status == "open":
                item.status = "completed"

    @property
    def open_items(self) -> list[ScopeItem]:
        return [item for item in self.scope if item.status == "open"]

    def add_item(self, text: str) -> ScopeItem:
        """Add an item to the ledger.

        Raises:
            ValueError: the ledger is full; the message is for the model.
        """
        if len(self.scope) >= MAX_ITEMS:
            raise ValueError(f"The scope has {MAX_ITEMS:,} items, more cannot be added.")
        if self._scope_is_large:
            raise ValueError(
                f"The items of the scope have {MAX_SCOPE_BYTES:,} bytes, more cannot be added."
            )
        number = 1 + sum(not item.original for item in self.scope)
        item = ScopeItem(id=f"A{number}", text=one_line(text, TEXT_CHARACTERS), source="added")
        self.scope = [*self.scope, item]
        return item

    def drop_item(self, item_id: str, reason: str) -> ScopeItem:
        """Drop an open item with a reason.

        Raises:
            ValueError: there is no such open item; the message lists the open ones for the model.
        """
        for item in self.open_items:
            if item.id == item_id:
                item.status = "dropped"
                most = SHORT_REASON if self._scope_is_large else TEXT_CHARACTERS
                item.reason = one_line(reason, most)
                return item
        named = ", ".join(item.id for item in self.open_items[:30])
        raise ValueError(f"There is no open item {item_id}. The open items are: {named or 'none'}.")

    @property
    def _scope_is_large(self) -> bool:
        return scope_bytes(self.scope) >= MAX_SCOPE_BYTES

    def take_items(self, changed: Sequence[ScopeItem]) -> None:
        """Apply the items that an activity reports as added or changed."""
        news = {item.id: item for item in changed}
        existing = [news.pop(item.id, item) for item in self.scope]
        self.scope = [*existing, *news.values()]

    def items_changed_since(self, before: Sequence[ScopeItem]) -> list[ScopeItem]:
        """The items that differ from an earlier ledger, to report to the workflow."""
        earlier = {item.id: item for item in before}
        return [item for item in self.scope if earlier.get(item.id) != item]

    def deep_copy(self) -> JobState:
        """An independent copy. Via JSON it takes a fifth of the time of `copy.deepcopy`."""
        return JobState.model_validate_json(self.model_dump_json(exclude_defaults=True))

    def without_notes(self) -> JobState:
        """A copy for workflow memory, without the fields that only checkpoints store."""
        slim = self.model_copy(deep=True)
        for todo in slim.phase.todos:
            todo.notes = ""
            todo.done_when = None
        slim.found_tools = []
        slim.used_skills = []
        slim.images = []
        slim.unused_tools = []
        slim.issue = ""
        slim.review_findings = ""
        slim.deferred_writes = []
        slim.last_requirement = 0
        slim.token_ratio = 1.0
        return slim

"""The state of a job: the content of a checkpoint's `state.json` and the basis of the workflow.

Workflow and activities change it by the same methods. So the copy in workflow memory and the one
in the checkpoint are equal after every step, except for fields that only checkpoints keep. Money
and tokens are not here, because a rewind does not return them (see `protocol.job_record`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from protocol.short_text import one_line

PhaseKind = Literal["strategic", "tactical"]
Purpose = Literal["bootstrap", "work", "transition", "rewind", "fork", "final"]
"""Purpose of a phase. All except `work` are strategic and have a predefined todo list."""

MAX_ITEMS = 2000
TEXT_CHARACTERS = 500
MAX_SCOPE_BYTES = 1_000_000
"""Most bytes of the texts and reasons of all items: the ledger must fit into one payload."""
SHORT_REASON = 40
"""Most characters of a reason once the ledger has reached that size."""


class Data(BaseModel):
    """Base of stored, sent and configured data; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class Match(Data):
    """A pattern that a file must contain."""

    path: str = Field(min_length=1, max_length=300)
    pattern: str = Field(min_length=1, max_length=500, description="RE2 syntax.")


class ValidFile(Data):
    """A file that must conform to a schema."""

    # `schema` is a method of every Pydantic model.
    model_config = ConfigDict(extra="forbid", validate_by_name=True, serialize_by_alias=True)

    path: str = Field(min_length=1, max_length=300, description="A JSON or YAML file.")
    schema_: dict[str, Any] = Field(alias="schema", description="JSON Schema, 2020-12.")


class DoneWhen(Data):
    """Conditions under which a todo counts as done; the system checks them itself."""

    file_exists: str | None = Field(
        None, min_length=1, max_length=300, description="A path, or a pattern like output/*.md."
    )
    matches: Match | None = None
    valid: ValidFile | None = None
    command: str | None = Field(
        None, min_length=1, max_length=2000, description="A shell command that exits with 0."
    )

    @model_validator(mode="after")
    def _check_one_condition(self) -> Self:
        conditions = (self.file_exists, self.matches, self.valid, self.command)
        if sum(each is not None for each in conditions) != 1:
            raise ValueError(
                "give one of file_exists, matches: {path, pattern}, valid: {path, schema} and "
                "command"
            )
        if self.command and "\0" in self.command:
            raise ValueError("command holds a NUL character, which no shell takes")
        return self

    @property
    def line(self) -> str:
        """`output/a.md exists`."""
        if self.matches:
            return f"{self.matches.path} has a match for {self.matches.pattern}"
        if self.valid:
            return f"{self.valid.path} fits its schema"
        if self.command:
            return f"this command succeeds: {self.command}"
        return f"{self.file_exists} exists"


class Todo(Data):
    """One step of a phase."""

    id: int
    content: str
    done: bool = False
    needed: bool = True
    """False when the job ended without this todo and did not need it."""
    updates: str = ""
    """The file that this todo updates; a change to it in the phase counts as completion."""
    items: list[str] = Field(default_factory=list)
    """Ids of the scope items that this todo covers."""
    done_when: DoneWhen | None = None
    """Stored in checkpoints, not in workflow memory."""
    notes: str = ""
    """The agent's notes at completion. Stored in checkpoints, not in workflow memory."""


class Phase(Data):
    """A stretch of work with one todo list and one conversation."""

    number: int
    kind: PhaseKind
    purpose: Purpose
    name: str
    description: str = ""
    since: int = 0
    """The job's model calls before the phase began."""
    plan_position: int = 0
    """Index of the first open phase of `plan.md`, from 1; 0 without a plan."""
    plan_total: int = 0
    todos: list[Todo]

    @property
    def current(self) -> Todo | None:
        """The first open todo; None when all are closed."""
        return next(iter(self.open_todos), None)

    @property
    def open_todos(self) -> list[Todo]:
        """Todos that are neither done nor closed by the end of the job."""
        return [todo for todo in self.todos if not todo.done and todo.needed]

    @property
    def open_count(self) -> int:
        return len(self.open_todos)

    @property
    def progress(self) -> tuple[int, int]:
        """Counts of done todos and of all needed todos."""
        return sum(todo.done for todo in self.todos), sum(
            todo.done or todo.needed for todo in self.todos
        )

    def close(self, completed: Sequence[int]) -> None:
        """Close the list when the job ends: `completed` are done, other open todos not needed."""
        for todo in self.open_todos:
            todo.done = todo.id in completed
            todo.needed = todo.done


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
    remarks: list[Remark] = Field(default_factory=list)
    """Remarks of people, oldest first. A rewind does not remove them."""
    deferred_writes: list[DeferredWrite] = Field(default_factory=list)
    """Pending writes to shared stores. Stored in checkpoints, not in workflow memory."""

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
        the plan is completed by its box.
        """
        if todo.items or self.phase.purpose != "work":
            return todo.items
        named = {item for other in self.phase.todos if not other.done for item in other.items}
        following = (
            item.id
            for item in self.scope
            if item.status == "open" and item.source == "given" and item.id not in named
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
        slim.deferred_writes = []
        return slim


def fewest_todos(purpose: Purpose, plan_phases: int, least: int) -> int:
    """The least number of todos in the next list.

    One todo is enough after a rewind, in a fork, before the end and for a plan of one phase, so
    that corrections need no padding.

    Args:
        purpose: Purpose of the phase that hands over the list.
        plan_phases: Number of phases in `plan.md`.
        least: The agent's configured minimum, for every other list.
    """
    return 1 if purpose in ("rewind", "fork", "final") or plan_phases <= 1 else least


def scope_bytes(items: Sequence[ScopeItem]) -> int:
    """Bytes of the texts and reasons of a ledger."""
    return sum(len((item.text + item.reason).encode()) for item in items)

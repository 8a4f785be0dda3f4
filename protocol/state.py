"""The state of a job: what a checkpoint's `state.json` holds and what workflow code decides on.

Both sides keep it by the same methods, so that the copy in workflow memory and the one in the
checkpoint are equal after every step, but for what only the latter keeps. Money and tokens are
not here: a rewind does not give them back (see `protocol.record`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from protocol.text import one_line

PhaseKind = Literal["strategic", "tactical"]
Purpose = Literal["bootstrap", "work", "transition", "rewind", "fork", "final"]
"""Why a phase exists. Every purpose but `work` is strategic and has a predefined todo list."""

MAX_ITEMS = 2000
TEXT_CHARACTERS = 500
MAX_SCOPE_BYTES = 1_000_000
"""Of the texts and reasons of all items: the ledger must fit into one payload."""
SHORT_REASON = 40
"""Characters of a reason once the ledger is that large."""


class Data(BaseModel):
    """Base of all that is kept, sent or configured; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class Match(Data):
    """A passage that a file must have."""

    path: str = Field(min_length=1, max_length=300)
    pattern: str = Field(min_length=1, max_length=500, description="RE2 syntax.")


class ValidFile(Data):
    """A file that must fit a schema."""

    # `schema` is a method of every Pydantic model.
    model_config = ConfigDict(extra="forbid", validate_by_name=True, serialize_by_alias=True)

    path: str = Field(min_length=1, max_length=300, description="A JSON or YAML file.")
    schema_: dict[str, Any] = Field(alias="schema", description="JSON Schema, 2020-12.")


class DoneWhen(Data):
    """What must hold before a todo counts as done; the system looks for itself."""

    file_exists: str | None = Field(
        None, min_length=1, max_length=300, description="A path, or a pattern like output/*.md."
    )
    matches: Match | None = None
    valid: ValidFile | None = None
    command: str | None = Field(
        None, min_length=1, max_length=2000, description="A shell command that exits with 0."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
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
    """False once the job ended without it: nobody did it, and nobody had to."""
    updates: str = ""
    """The file that this todo brings up to date: a change of it in the phase shows it is done."""
    items: list[str] = Field(default_factory=list)
    """Ids of the scope items this todo covers."""
    done_when: DoneWhen | None = None
    """Kept in checkpoints, not in workflow memory."""
    notes: str = ""
    """What the agent said on completing it. Kept in checkpoints, not in workflow memory."""


class Phase(Data):
    """A stretch of work with one todo list and one conversation."""

    number: int
    kind: PhaseKind
    purpose: Purpose
    name: str
    description: str = ""
    since: int = 0
    """Model calls of the job before the phase began."""
    plan_position: int = 0
    """Place of the first open phase of `plan.md`, from 1; 0 when there is no plan yet."""
    plan_total: int = 0
    todos: list[Todo]

    @property
    def current(self) -> Todo | None:
        """The first open todo."""
        return next(iter(self.open_todos), None)

    @property
    def open_todos(self) -> list[Todo]:
        """Those neither done nor closed by the end of the job."""
        return [todo for todo in self.todos if not todo.done and todo.needed]

    @property
    def open_count(self) -> int:
        return len(self.open_todos)

    @property
    def progress(self) -> tuple[int, int]:
        """How many todos are done, and how many there are to do: none that is not needed."""
        return sum(todo.done for todo in self.todos), sum(
            todo.done or todo.needed for todo in self.todos
        )

    def close(self, completed: Sequence[int]) -> None:
        """End the list with the job: these todos are done, the other open ones are not needed."""
        for todo in self.open_todos:
            todo.done = todo.id in completed
            todo.needed = todo.done


class ScopeItem(Data):
    """One thing the job was asked to cover."""

    id: str
    text: str
    status: Literal["open", "completed", "dropped"] = "open"
    source: Literal["given", "plan", "added"] = "given"
    """From the start input or the instructions; from the first plan's boxes; or added later."""
    reason: str = ""
    """Why it was dropped."""

    @property
    def original(self) -> bool:
        """Whether it was there from the start. The original items never change."""
        return self.source != "added"

    @property
    def line(self) -> str:
        """`S2 (open): Cover water`."""
        return f"{self.id} ({self.status}): {self.text}"


class Remark(Data):
    """What a person said to the agent while it worked; in force until the job ends."""

    text: str
    by: str = ""
    phase: int = 0

    @property
    def line(self) -> str:
        """`From ada@host in phase 2: Use metric units.`"""
        where = f" in phase {self.phase}" if self.phase else ""
        return f"From {self.by or 'a person'}{where}: {self.text.strip()}"


class DeferredWrite(Data):
    """A write to a shared store that did not answer, to be made when it does."""

    kind: str
    """Who knows how to make it (`activities.stores.outbox`)."""
    key: str
    """Idempotency key of the call that it belongs to."""
    at: int
    """When that call was scheduled, epoch milliseconds."""
    about: str = ""
    """What it writes of: the name of a requirement."""
    data: dict[str, Any] = Field(default_factory=dict)


class UsedSkill(Data):
    """A skill whose body the model has called for."""

    name: str
    todo: int
    """Id of the todo that needed it."""
    message: int
    """Number of the message that holds the body."""


class ShownImage(Data):
    """An image that a result shows: a message after the results of its reply holds it."""

    pointer: str
    """What it is in words: all that is left of it after a compaction."""
    blob: str
    """Hex id of its bytes, in the checkpoint's `images/`."""
    mime: str
    tokens: int


class JobState(Data):
    """Everything about a job that a rewind restores, beside its files."""

    step: int = 0
    """Model calls so far; never goes down."""
    rewinds: int = 0
    phase: Phase
    scope: list[ScopeItem] = Field(default_factory=list)
    found_tools: list[str] = Field(default_factory=list)
    """Deferred tools that were found in this phase, in that order. Kept in checkpoints, not in
    workflow memory."""
    used_skills: list[UsedSkill] = Field(default_factory=list)
    """Of this phase. Kept in checkpoints, not in workflow memory."""
    images: list[ShownImage] = Field(default_factory=list)
    """Of the newest reply, until all its calls have results. Kept in checkpoints, not in workflow
    memory."""
    unused_tools: list[str] = Field(default_factory=list)
    """Tools that this phase does not offer, since the job has no use for them. Kept in checkpoints,
    not in workflow memory."""
    issue: str = ""
    """What was wrong with the attempt before, until a phase of work is completed. Kept in
    checkpoints, not in workflow memory."""
    remarks: list[Remark] = Field(default_factory=list)
    """Of people, oldest first. No rewind takes them back."""
    deferred_writes: list[DeferredWrite] = Field(default_factory=list)
    """Writes to shared stores that are still to be made. Kept in checkpoints, not in workflow
    memory."""

    def complete_todo(self, todo_id: int, notes: str = "") -> None:
        """Close a todo, and the scope items that no open todo covers any more."""
        for todo in self.phase.todos:
            if todo.id == todo_id:
                covered = self.covered_by(todo)
                todo.done = True
                todo.notes = notes
                self._complete_items(covered)

    def covered_by(self, todo: Todo) -> list[str]:
        """The scope items that a todo covers: those it names, else the next open one.

        Only todos that a plan brought cover what they do not name, and only items that were given:
        what came from the plan has its box to show for it.
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
        """Take on one more thing.

        Raises:
            ValueError: the ledger is full; says so to the model.
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
        """Leave an open item out, for a reason.

        Raises:
            ValueError: there is no such open item; says to the model which there are.
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
        """Take over what an activity reports that it added to the ledger or changed in it."""
        news = {item.id: item for item in changed}
        existing = [news.pop(item.id, item) for item in self.scope]
        self.scope = [*existing, *news.values()]

    def items_changed_since(self, before: Sequence[ScopeItem]) -> list[ScopeItem]:
        """The items that differ from the ledger before, for such a report."""
        earlier = {item.id: item for item in before}
        return [item for item in self.scope if earlier.get(item.id) != item]

    def deep_copy(self) -> JobState:
        """A copy that shares nothing with this one. By way of JSON, a fifth of a deep copy's."""
        return JobState.model_validate_json(self.model_dump_json(exclude_defaults=True))

    def without_notes(self) -> JobState:
        """A copy for workflow memory, without what only checkpoints keep."""
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
    """How many todos the next list needs.

    Corrections are not padded: after a rewind, in a fork, before the end and for a plan of one
    phase a single todo is enough.

    Args:
        purpose: Of the phase that hands the list over.
        plan_phases: How many phases `plan.md` has.
        least: The agent's own figure, for every other list.
    """
    return 1 if purpose in ("rewind", "fork", "final") or plan_phases <= 1 else least


def scope_bytes(items: Sequence[ScopeItem]) -> int:
    """Size of what a ledger says."""
    return sum(len((item.text + item.reason).encode()) for item in items)

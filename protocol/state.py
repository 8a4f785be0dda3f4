"""The state of a job: what a checkpoint's `state.json` holds and what workflow code decides on.

Both sides keep it by the same methods, so that the copy in workflow memory and the one in the
checkpoint are equal after every step, but for what only the latter keeps. Money and tokens are
not here: a rewind does not give them back (see `protocol.record`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PhaseKind = Literal["strategic", "tactical"]
Purpose = Literal["bootstrap", "work", "transition", "rewind", "fork", "final"]
"""Why a phase exists. Every purpose but `work` is strategic and has a predefined todo list."""


class Data(BaseModel):
    """Base of everything that crosses between workflow, activities and checkpoints."""

    model_config = ConfigDict(extra="forbid")


class Todo(Data):
    """One step of a phase."""

    id: int
    content: str
    done: bool = False
    items: list[str] = Field(default_factory=list)
    """Ids of the scope items this todo covers."""
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
        return next((todo for todo in self.todos if not todo.done), None)

    @property
    def open_count(self) -> int:
        return sum(not todo.done for todo in self.todos)


class ScopeItem(Data):
    """One thing the job was asked to cover."""

    id: str
    text: str
    status: Literal["open", "completed", "dropped"] = "open"
    original: bool = True


class JobState(Data):
    """Everything about a job that a rewind restores, beside its files."""

    step: int = 0
    """Model calls so far; never goes down."""
    rewinds: int = 0
    phase: Phase
    scope: list[ScopeItem] = Field(default_factory=list)
    found: list[str] = Field(default_factory=list)
    """Deferred tools that were found in this phase, in that order. Kept in checkpoints, not in
    workflow memory."""

    def complete_todo(self, todo_id: int, notes: str = "") -> None:
        """Close a todo, and the scope items that no open todo covers any more."""
        for todo in self.phase.todos:
            if todo.id == todo_id:
                todo.done = True
                todo.notes = notes
                self._complete_items(todo.items)

    def _complete_items(self, ids: list[str]) -> None:
        pending = {item for todo in self.phase.todos if not todo.done for item in todo.items}
        for item in self.scope:
            if item.id in ids and item.id not in pending and item.status == "open":
                item.status = "completed"

    def without_notes(self) -> JobState:
        """A copy for workflow memory, where what the agent noted and found is not needed."""
        slim = self.model_copy(deep=True)
        for todo in slim.phase.todos:
            todo.notes = ""
        slim.found = []
        return slim

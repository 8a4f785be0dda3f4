"""A phase of a job: its kind, its purpose and its todo list."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.todo_list import Todo

PhaseKind = Literal["strategic", "tactical"]
Purpose = Literal["bootstrap", "work", "transition", "rewind", "fork", "final"]
"""Purpose of a phase. All except `work` are strategic and have a predefined todo list."""


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
    covers: list[str] = Field(default_factory=list)
    """For a phase of work: ids of the steps and items that its whole list stands for."""
    shared: list[str] = Field(default_factory=list)
    """Those of them that another open phase of the plan stands for as well."""
    ends_job: bool = False
    """Whether a list of work ends with the todo to end the job."""
    todos: list[Todo]

    @property
    def is_ending(self) -> bool:
        """Whether only the todo that `job_complete` completes is open."""
        return (self.ends_job or self.purpose == "final") and self.open_count == 1

    @property
    def current(self) -> Todo | None:
        for todo in self.todos:
            if not todo.done and todo.needed:
                return todo
        return None

    @property
    def open_todos(self) -> list[Todo]:
        return [todo for todo in self.todos if not todo.done and todo.needed]

    @property
    def open_count(self) -> int:
        return len(self.open_todos)

    @property
    def progress(self) -> tuple[int, int]:
        return sum(todo.done for todo in self.todos), sum(
            todo.done or todo.needed for todo in self.todos
        )

    def complete(self, todo_id: int, notes: str = "", *, done: bool = True) -> None:
        for todo in self.todos:
            if todo.id == todo_id:
                todo.done, todo.needed, todo.notes = done, done, notes

    def tick_changed(self, updated: Sequence[str]) -> list[int]:
        """Tick what was passed over and whose file was changed after all; return the ids."""
        changed = [each.id for each in self.todos if not each.needed and each.updates in updated]
        self.tick(changed)
        return changed

    def tick(self, ids: Sequence[int]) -> None:
        for todo in self.todos:
            if todo.id in ids:
                todo.done = todo.needed = True

    def close(self, completed: Sequence[int]) -> None:
        for todo in self.open_todos:
            todo.done = todo.id in completed
            todo.needed = todo.done


def fewest_todos_after_phase(
    purpose: Purpose, plan_phases: int, open_phases: int, least: int
) -> int:
    """The least number of todos in the next list.

    One todo is enough after a rewind, in a fork, before the end, for a plan of one phase and for a
    plan that is done, so that corrections need no padding.
    """
    corrects = purpose in ("rewind", "fork", "final") or not open_phases
    return 1 if corrects or plan_phases <= 1 else least

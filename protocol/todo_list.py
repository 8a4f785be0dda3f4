"""A phase's todos, and the conditions on which they count as done."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from protocol.data_model import Data
from protocol.short_text import count_noun


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
    id: int
    content: str
    done: bool = False
    needed: bool = True
    """False when it was passed over: by the end of the job, or because the file that it updates had
    not changed when the agent completed it."""
    updates: str = ""
    """The file that this todo updates; a change to it in the phase counts as completion."""
    items: list[str] = Field(default_factory=list)
    done_when: DoneWhen | None = None
    """Stored in checkpoints, not in workflow memory."""
    notes: str = ""


class TodoEntry(Data):
    id: int | None = None
    content: str | None = None
    items: list[str] = Field(default_factory=list)
    done_when: DoneWhen | None = None
    done_when_error: str | None = None


def todo_list_problems(
    todos: Sequence[TodoEntry], count: int, least: int, most: int
) -> Iterator[str]:
    """Yield what is wrong with a list that is handed over, a clause each."""
    if count < least:
        yield (
            f"it holds {count_noun(count, 'todo')}, {least} to {most} are needed: merge the phase "
            "with the next one, or split its todos into smaller steps"
        )
    if count > most:
        yield (
            f"it holds {count} todos, {least} to {most} are needed: split the phase in two and "
            "hand over the first"
        )
    used_ids = set[int]()
    for place, todo in enumerate(todos, 1):
        if todo.id is None:
            yield f"the id of entry {place} is not a whole number under a million"
            continue
        if todo.id in used_ids:
            yield f"the id {todo.id} is used twice"
        used_ids.add(todo.id)
        if todo.content is None:
            yield f"the content of todo {todo.id} is not a text with words"
        if todo.done_when_error:
            yield f"done_when of todo {todo.id} cannot be used: {todo.done_when_error}"

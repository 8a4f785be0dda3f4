"""A phase's todos, and the conditions on which they count as done."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from protocol.data_model import Data


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

"""What a graph is to its users: reads and writes of several statements, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, Field

from protocol.errors import Refusal, Unavailable


class GraphQueryError(Refusal):
    """The engine does not take the query, or it needs too much; the message is the engine's."""


class GraphUnavailableError(Unavailable):
    """The graph was not reached and nothing was done; the message says what to do."""


@dataclass(frozen=True)
class GraphLimits:
    """What one read or write may take."""

    wait_seconds: float = 30
    """For the lock."""
    seconds: float = 15
    """For the statements; asked of the engine, and enforced from outside some seconds later."""
    rows: int = 10_000
    """Of one statement."""
    bytes: int = 4_000_000
    """Of all rows of one statement, as JSON."""
    memory_mb: int = 1024


@dataclass(frozen=True)
class GraphQuery:
    cypher: str
    parameters: dict[str, object] = field(default_factory=dict)


class GraphRows(BaseModel):
    """The rows of one statement; nodes and relations are mappings with their kind in `_label`."""

    columns: list[str]
    rows: list[list[object]]
    more: bool = False
    """Whether there were more than the limits let through."""


class GraphTable(BaseModel):
    """A kind as the database has it, with the types of its own."""

    name: str
    node: bool
    properties: dict[str, str]
    ends: list[tuple[str, str]] = Field(default_factory=list)


class Graph(Protocol):
    """A graph that jobs share. What the schema declares is made when it is first used.

    Every method raises GraphQueryError and GraphUnavailableError.
    """

    def read(self, *queries: GraphQuery) -> list[GraphRows]:
        """The rows of each; nothing can be changed."""
        ...

    def write(self, *queries: GraphQuery) -> list[GraphRows]:
        """All of them in one transaction: done wholly or not at all."""
        ...

    def schema(self) -> list[GraphTable]:
        """What the database holds, by name."""
        ...

    def close(self) -> None: ...

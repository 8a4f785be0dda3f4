"""The graph's interface: atomic reads and writes of several statements."""

from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, Field

from protocol.errors import Refusal, Unavailable


class GraphQueryError(Refusal):
    """The engine rejects the query, or it needs too much; the message is the engine's."""


class GraphUnavailableError(Unavailable):
    """The graph was not reached and nothing changed; the message says what to do."""


@dataclass(frozen=True)
class GraphLimits:
    wait_seconds: float = 30
    """For acquiring the lock."""
    seconds: float = 15
    """For the statements; the engine's limit, enforced from outside a few seconds later."""
    rows: int = 10_000
    """Per statement."""
    bytes: int = 4_000_000
    """Per statement, all rows as JSON."""
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
    """Whether the limits cut rows off."""


class GraphTable(BaseModel):
    """A kind of node or relation in the database, with ladybug's type names."""

    name: str
    node: bool
    properties: dict[str, str]
    ends: list[tuple[str, str]] = Field(default_factory=list)


@dataclass(frozen=True)
class GraphCapabilities:
    """In what the kinds of graphs differ."""

    enforces_schema: bool
    """A kind that no schema declares is refused."""
    refuses_writes: bool
    """A query that is to read and would write is refused; otherwise its writes are undone."""
    limits_memory: bool
    """A query that needs more than `GraphLimits.memory_mb` is stopped."""


class Graph(Protocol):
    """A graph shared by jobs. Whatever the schema declares is created on first use.

    Every method but `close` raises GraphQueryError and GraphUnavailableError.
    """

    @property
    def capabilities(self) -> GraphCapabilities: ...

    def read(self, *queries: GraphQuery) -> list[GraphRows]:
        """Return the rows of each query, changing nothing."""
        ...

    def write(self, *queries: GraphQuery) -> list[GraphRows]:
        """Run all queries in one transaction and return their rows."""
        ...

    def schema(self) -> list[GraphTable]:
        """Return the kinds the database has, by name."""
        ...

    def close(self) -> None: ...

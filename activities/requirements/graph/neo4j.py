"""The graph in a Neo4j server, or another that speaks its protocol (Bolt) and its Cypher.

What is asked goes through the driver's asynchronous form, since only that lets go of a server that
does not answer.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from activities.requirements.graph import statements
from activities.requirements.graph.interface import (
    GraphAway,
    GraphRefused,
    Limits,
    Query,
    Rows,
    Table,
)
from config.schema.graph import GraphSchema

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_FORM = "neo4j://user:password@host:7687/database"
_CONNECT_SECONDS = 10
_GRACE_SECONDS = 3
_BEAT_SECONDS = 0.25
_NOT_OURS = (
    "Neo.ClientError.Database.",
    "Neo.ClientError.Security.",
    "Neo.TransientError.",
    # Of two that MERGE the same new node at once one may fail; coming again it finds the node.
    "Neo.ClientError.Schema.ConstraintValidationFailed",
)
"""Codes of what no other query mends: no such database, nobody let in, a server that is busy."""


@dataclass(frozen=True)
class Address:
    """Where the server is. The password is in no text made of it."""

    uri: str
    user: str | None
    password: str | None = field(repr=False)
    database: str | None

    @classmethod
    def parse(cls, url: str) -> Address:
        """Raises GraphAway: it is none; the message shows nothing of a password."""
        try:
            parts = urlsplit(url)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise GraphAway(f"LONGHAUL_GRAPH_URL is no address; it has the form {_FORM}.") from None
        if parts.scheme not in _SCHEMES:
            raise GraphAway(
                f"LONGHAUL_GRAPH_URL begins with {parts.scheme or 'nothing'!r}; it has the form "
                f"{_FORM}, and {', '.join(_SCHEMES)} are taken."
            )
        if not parts.hostname:
            raise GraphAway(f"LONGHAUL_GRAPH_URL names no host; it has the form {_FORM}.")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(
            uri=f"{parts.scheme}://{host}{port}",
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            database=parts.path.strip("/") or None,
        )


def driver() -> Any:
    """The driver's module. Raises GraphAway: it is not installed."""
    try:
        return importlib.import_module("neo4j")
    except ImportError:
        raise GraphAway(
            "LONGHAUL_GRAPH_URL names a Neo4j server, but its driver is not installed on this "
            "worker: run .venv/bin/python -m pip install '.[neo4j]' in the checkout, or unset "
            "the variable."
        ) from None


class Neo4j:
    """The server at `url`; connected when it is first used.

    Raises:
        GraphAway: on construction, when the driver is not installed or the address is wrong.
    """

    def __init__(
        self,
        url: str,
        schema: GraphSchema,
        limits: Limits | None = None,
        heartbeat: Callable[[], None] | None = None,
    ) -> None:
        """`heartbeat` is called about four times a second; what it raises ends the work."""
        self._address = Address.parse(url)
        self._schema = schema
        self._limits = limits or Limits()
        self._heartbeat = heartbeat
        self._neo4j = driver()
        self._loop = asyncio.Runner()
        self._driver: Any = None
        self._constrained = False

    def read(self, *queries: Query) -> list[Rows]:
        return self._run(queries, write=False)

    def write(self, *queries: Query) -> list[Rows]:
        if not self._constrained:
            # A change of the schema may not share a transaction with one of the data.
            for text in statements.constraints(self._schema):
                self._run((Query(text),), write=True)
            self._constrained = True
        return self._run(queries, write=True)

    def schema(self) -> list[Table]:
        # The functions are Cypher's: Neo4j's own procedures for this are in no other server.
        nodes, properties, relations, held = self.read(
            Query("MATCH (n) RETURN DISTINCT labels(n)"),
            Query("MATCH (n) UNWIND labels(n) AS label UNWIND keys(n) AS key "
                  "RETURN DISTINCT label, key, valueType(n[key])"),
            Query("MATCH (a)-[r]->(b) RETURN DISTINCT type(r), labels(a), labels(b)"),
            Query("MATCH ()-[r]->() UNWIND keys(r) AS key "
                  "RETURN DISTINCT type(r), key, valueType(r[key])"),
        )  # fmt: skip
        return tables_of(nodes.rows, properties.rows, relations.rows, held.rows)

    def close(self) -> None:
        if self._driver:
            self._loop.run(self._driver.close())
        self._loop.close()

    def _run(self, queries: tuple[Query, ...], *, write: bool) -> list[Rows]:
        errors = self._neo4j.exceptions
        try:
            return self._loop.run(self._within(self._transaction(queries, write=write)))
        except TimeoutError:
            if not write and self._answers():
                raise GraphRefused(
                    f"It took more than {self._limits.seconds:g} s and was stopped."
                ) from None
            raise self._away("it does not answer") from None
        except errors.Neo4jError as error:
            code, told = str(error.code), str(error.message)[:1000]
            if "OutOfMemory" in code and not write:
                raise GraphRefused(told) from None
            if code.startswith(_NOT_OURS):
                raise self._away(told) from None
            raise GraphRefused(told) from None
        except (errors.DriverError, OSError) as error:
            raise self._away(str(error)) from None

    def _away(self, told: str) -> GraphAway:
        line = told.partition("\n")[0][:300].rstrip(".:")
        return GraphAway(
            f"The graph at {self._address.uri} cannot be used: {line}. See that the server runs "
            "and that LONGHAUL_GRAPH_URL has its address, user, password and database."
        )

    def _answers(self) -> bool:
        """Whether it was the query that took long, and not the server that stands still."""
        errors = self._neo4j.exceptions
        try:
            with suppress(errors.Neo4jError):
                self._loop.run(self._within(self._transaction((Query("RETURN 1"),), write=False)))
        except (TimeoutError, OSError, errors.DriverError):
            return False
        return True

    async def _within(self, work: Coroutine[Any, Any, list[Rows]]) -> list[Rows]:
        """Raises TimeoutError: the server did not heed the time limit."""
        async with asyncio.timeout(_CONNECT_SECONDS + self._limits.seconds + _GRACE_SECONDS):
            task = asyncio.ensure_future(work)
            try:
                while not task.done():
                    if self._heartbeat:
                        self._heartbeat()
                    await asyncio.wait([task], timeout=_BEAT_SECONDS)
            finally:
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
            return task.result()

    async def _transaction(self, queries: tuple[Query, ...], *, write: bool) -> list[Rows]:
        address, neo4j = self._address, self._neo4j
        if self._driver is None:
            self._driver = neo4j.AsyncGraphDatabase.driver(
                address.uri,
                auth=(address.user, address.password or "") if address.user else None,
                connection_timeout=_CONNECT_SECONDS,
                connection_acquisition_timeout=_CONNECT_SECONDS * 2,
            )
        access = neo4j.WRITE_ACCESS if write else neo4j.READ_ACCESS
        session = self._driver.session(database=address.database, default_access_mode=access)
        async with (
            session,
            await session.begin_transaction(timeout=self._limits.seconds) as transaction,
        ):
            found = [await self._taken(transaction, query) for query in queries]
            # Whatever a reading query did on a server that lets it: undone.
            await (transaction.commit() if write else transaction.rollback())
            return found

    async def _taken(self, transaction: Any, query: Query) -> Rows:
        result = await transaction.run(query.cypher, query.parameters)
        columns, size = list(result.keys()), 0
        rows: list[list[object]] = []
        async for record in result:
            row = [self._plain(value) for value in record.values()]
            size += len(json.dumps(row))
            if len(rows) == self._limits.rows or size > self._limits.bytes:
                return Rows(columns=columns, rows=rows, more=True)
            rows.append(row)
        return Rows(columns=columns, rows=rows)

    def _plain(self, value: object) -> object:
        graph = self._neo4j.graph
        if isinstance(value, graph.Node):
            labels = sorted(value.labels)
            return {"_label": labels[0] if len(labels) == 1 else labels, **self._held(value)}
        if isinstance(value, graph.Relationship):
            return {"_label": value.type, **self._held(value)}
        if isinstance(value, graph.Path):
            return {
                "_NODES": [self._plain(node) for node in value.nodes],
                "_RELS": [self._plain(relation) for relation in value.relationships],
            }
        if isinstance(value, dict):
            return {str(key): self._plain(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if value is None or isinstance(value, (str, int)):
            return value
        if isinstance(value, float) and abs(value) < float("inf"):
            return value
        return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)

    def _held(self, entity: Any) -> dict[str, object]:
        return {key: self._plain(entity[key]) for key in sorted(entity.keys())}


_TYPES = {"STRING": "STRING", "INTEGER": "INT64", "FLOAT": "DOUBLE", "BOOLEAN": "BOOL"}


def _type(told: str) -> str:
    """The server's word for a type as ladybug has it."""
    name = told.removesuffix(" NOT NULL")
    if name.startswith(("LIST<STRING", "LIST<ANY")):
        return "STRING[]"
    return _TYPES.get(name, name)


def tables_of(
    nodes: list[list[Any]],
    properties: list[list[Any]],
    relations: list[list[Any]],
    held: list[list[Any]],
) -> list[Table]:
    """What the server holds, as tables with ladybug's names of types.

    Args:
        nodes: Labels; a row for each combination.
        properties: Label, property, type.
        relations: Type, labels of its start, labels of its end.
        held: Type of relation, property, type.
    """
    found: dict[tuple[str, bool], dict[str, set[str]]] = {}
    pairs: dict[str, set[tuple[str, str]]] = {}
    for (labels,) in nodes:
        found |= {(label, True): {} for label in labels}
    for kind, starts, stops in relations:
        found[kind, False] = {}
        joined = ("+".join(sorted(starts)), "+".join(sorted(stops)))
        pairs.setdefault(kind, set()).add(joined)
    for is_node, rows in ((True, properties), (False, held)):
        for name, key, told in rows:
            # Others write meanwhile: it may be of a kind that was not there before.
            found.setdefault((name, is_node), {}).setdefault(key, set()).add(_type(told))
    return [
        Table(
            name=name,
            node=is_node,
            ends=[] if is_node else sorted(pairs.get(name, ())),
            properties={key: " or ".join(sorted(types[key])) for key in sorted(types)},
        )
        for (name, is_node), types in sorted(found.items())
    ]

"""The graph in a Neo4j server, or another that speaks Bolt and Cypher.

Uses the driver's asynchronous API: only that can abandon a server that does not answer.
"""

import asyncio
import importlib
import json
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from activities.requirements.graph import cypher
from activities.requirements.graph.interface import (
    GraphCapabilities,
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphRows,
    GraphTable,
    GraphUnavailableError,
)
from config.schema.graph import GraphSchema

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_FORM = "neo4j://user:password@host:7687/database"
_CONNECT_SECONDS = 10
_WAKE_SECONDS = 0.25
_GRACE_SECONDS = 3
_NOT_OURS = (
    "Neo.ClientError.Database.",
    "Neo.ClientError.Security.",
    "Neo.TransientError.",
    # If two transactions MERGE the same new node at once, one may fail; a retry finds the node.
    "Neo.ClientError.Schema.ConstraintValidationFailed",
)
"""Error codes that no other query fixes: no such database, access denied, server busy."""


@dataclass(frozen=True)
class Neo4jAddress:
    """Address of the server; its repr hides the password."""

    uri: str
    user: str | None
    password: str | None = field(repr=False)
    database: str | None

    @classmethod
    def parse(cls, url: str) -> "Neo4jAddress":
        """Raise GraphUnavailableError for an invalid address; the message hides the password."""
        try:
            parts = urlsplit(url)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise GraphUnavailableError(
                f"LONGHAUL_GRAPH_URL is no address; it has the form {_FORM}."
            ) from None
        if parts.scheme not in _SCHEMES:
            raise GraphUnavailableError(
                f"LONGHAUL_GRAPH_URL begins with {parts.scheme or 'nothing'!r}; it has the form "
                f"{_FORM}, and {', '.join(_SCHEMES)} are taken."
            )
        if not parts.hostname:
            raise GraphUnavailableError(
                f"LONGHAUL_GRAPH_URL names no host; it has the form {_FORM}."
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(
            uri=f"{parts.scheme}://{host}{port}",
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            database=parts.path.strip("/") or None,
        )


def load_driver() -> Any:
    """Return the driver's module. Raises GraphUnavailableError if it is not installed."""
    try:
        return importlib.import_module("neo4j")
    except ImportError:
        raise GraphUnavailableError(
            "LONGHAUL_GRAPH_URL names a Neo4j server, but its driver is not installed on this "
            "worker: run .venv/bin/python -m pip install '.[neo4j]' in the checkout, or unset "
            "the variable."
        ) from None


class Neo4jGraph:
    """The server at `url`, connected on first use.

    Raises:
        GraphUnavailableError: On construction, if the driver is not installed or the address is
            invalid.
    """

    capabilities = GraphCapabilities(
        enforces_schema=False, refuses_writes=False, limits_memory=False
    )

    def __init__(self, url: str, schema: GraphSchema, limits: GraphLimits | None = None) -> None:
        self._address = Neo4jAddress.parse(url)
        self._schema = schema
        self._limits = limits or GraphLimits()
        self._neo4j = load_driver()
        self._loop = asyncio.Runner()
        self._driver: Any = None
        self._constrained = False

    def read(self, *queries: GraphQuery) -> list[GraphRows]:
        return self._run_queries(queries, write=False)

    def write(self, *queries: GraphQuery) -> list[GraphRows]:
        if not self._constrained:
            # A transaction may not change both schema and data.
            for text in cypher.constraint_cypher(self._schema):
                self._run_queries((GraphQuery(text),), write=True)
            self._constrained = True
        return self._run_queries(queries, write=True)

    def schema(self) -> list[GraphTable]:
        # Plain Cypher functions: other servers lack Neo4j's procedures for this.
        nodes, properties, relations, relation_properties = self.read(
            GraphQuery("MATCH (n) RETURN DISTINCT labels(n)"),
            GraphQuery("MATCH (n) UNWIND labels(n) AS label UNWIND keys(n) AS key "
                  "RETURN DISTINCT label, key, valueType(n[key])"),
            GraphQuery("MATCH (a)-[r]->(b) RETURN DISTINCT type(r), labels(a), labels(b)"),
            GraphQuery("MATCH ()-[r]->() UNWIND keys(r) AS key "
                  "RETURN DISTINCT type(r), key, valueType(r[key])"),
        )  # fmt: skip
        return build_neo4j_tables(
            nodes.rows, properties.rows, relations.rows, relation_properties.rows
        )

    def close(self) -> None:
        if self._driver:
            self._loop.run(self._driver.close())
        self._loop.close()

    def _run_queries(self, queries: tuple[GraphQuery, ...], *, write: bool) -> list[GraphRows]:
        errors = self._neo4j.exceptions
        try:
            return self._loop.run(
                self._run_within_limit(self._run_transaction(queries, write=write))
            )
        except TimeoutError:
            if not write and self._is_answering():
                raise GraphQueryError(
                    f"It took more than {self._limits.seconds:g} s and was stopped."
                ) from None
            raise self._unavailable_error("it does not answer") from None
        except errors.Neo4jError as error:
            code, message = str(error.code), str(error.message)[:1000]
            if "OutOfMemory" in code and not write:
                raise GraphQueryError(message) from None
            if code.startswith(_NOT_OURS):
                raise self._unavailable_error(message) from None
            raise GraphQueryError(message) from None
        except (errors.DriverError, OSError) as error:
            raise self._unavailable_error(str(error)) from None

    def _unavailable_error(self, message: str) -> GraphUnavailableError:
        line = message.partition("\n")[0][:300].rstrip(".:")
        return GraphUnavailableError(
            f"The graph at {self._address.uri} cannot be used: {line}. See that the server runs "
            "and that LONGHAUL_GRAPH_URL has its address, user, password and database."
        )

    def _is_answering(self) -> bool:
        """Return whether the server still answers, so that the query itself was slow."""
        errors = self._neo4j.exceptions
        try:
            with suppress(errors.Neo4jError):
                self._loop.run(
                    self._run_within_limit(
                        self._run_transaction((GraphQuery("RETURN 1"),), write=False)
                    )
                )
        except (TimeoutError, OSError, errors.DriverError):
            return False
        return True

    async def _run_within_limit(
        self, work: Coroutine[Any, Any, list[GraphRows]]
    ) -> list[GraphRows]:
        """Raises TimeoutError if the server ignores the time limit."""
        async with asyncio.timeout(_CONNECT_SECONDS + self._limits.seconds + _GRACE_SECONDS):
            task = asyncio.ensure_future(work)
            try:
                while not task.done():
                    # A thread that is cancelled notices it only when its loop wakes up.
                    await asyncio.wait([task], timeout=_WAKE_SECONDS)
            finally:
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
            return task.result()

    async def _run_transaction(
        self, queries: tuple[GraphQuery, ...], *, write: bool
    ) -> list[GraphRows]:
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
            results = [await self._read_rows(transaction, query) for query in queries]
            # Roll back anything a reading query changed on a server that lets it.
            await (transaction.commit() if write else transaction.rollback())
            return results

    async def _read_rows(self, transaction: Any, query: GraphQuery) -> GraphRows:
        result = await transaction.run(query.cypher, query.parameters)
        columns, size = list(result.keys()), 0
        rows: list[list[object]] = []
        async for record in result:
            row = [self._plain_value(value) for value in record.values()]
            size += len(json.dumps(row))
            if len(rows) == self._limits.rows or size > self._limits.bytes:
                return GraphRows(columns=columns, rows=rows, more=True)
            rows.append(row)
        return GraphRows(columns=columns, rows=rows)

    def _plain_value(self, value: object) -> object:
        graph = self._neo4j.graph
        if isinstance(value, graph.Node):
            labels = sorted(value.labels)
            return {
                "_label": labels[0] if len(labels) == 1 else labels,
                **self._plain_properties(value),
            }
        if isinstance(value, graph.Relationship):
            return {"_label": value.type, **self._plain_properties(value)}
        if isinstance(value, graph.Path):
            return {
                "_NODES": [self._plain_value(node) for node in value.nodes],
                "_RELS": [self._plain_value(relation) for relation in value.relationships],
            }
        if isinstance(value, dict):
            return {str(key): self._plain_value(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain_value(item) for item in value]
        if value is None or isinstance(value, (str, int)):
            return value
        if isinstance(value, float) and abs(value) < float("inf"):
            return value
        return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)

    def _plain_properties(self, entity: Any) -> dict[str, object]:
        return {key: self._plain_value(entity[key]) for key in sorted(entity.keys())}


_TYPES = {"STRING": "STRING", "INTEGER": "INT64", "FLOAT": "DOUBLE", "BOOLEAN": "BOOL"}


def _neo4j_type_as_ladybug(server_type: str) -> str:
    name = server_type.removesuffix(" NOT NULL")
    if name.startswith(("LIST<STRING", "LIST<ANY")):
        return "STRING[]"
    return _TYPES.get(name, name)


def build_neo4j_tables(
    nodes: list[list[Any]],
    properties: list[list[Any]],
    relations: list[list[Any]],
    relation_properties: list[list[Any]],
) -> list[GraphTable]:
    """Return the server's content as tables with ladybug's type names.

    Args:
        nodes: Labels; a row for each combination.
        properties: Label, property, type.
        relations: Type, start labels, end labels.
        relation_properties: Relation type, property, type.
    """
    types_by_kind: dict[tuple[str, bool], dict[str, set[str]]] = {}
    pairs: dict[str, set[tuple[str, str]]] = {}
    for (labels,) in nodes:
        types_by_kind |= {(label, True): {} for label in labels}
    for kind, starts, stops in relations:
        types_by_kind[kind, False] = {}
        joined = ("+".join(sorted(starts)), "+".join(sorted(stops)))
        pairs.setdefault(kind, set()).add(joined)
    for is_node, rows in ((True, properties), (False, relation_properties)):
        for name, key, server_type in rows:
            # A concurrent writer may have added a kind since the labels were read.
            types_by_kind.setdefault((name, is_node), {}).setdefault(key, set()).add(
                _neo4j_type_as_ladybug(server_type)
            )
    return [
        GraphTable(
            name=name,
            node=is_node,
            ends=[] if is_node else sorted(pairs.get(name, ())),
            properties={key: " or ".join(sorted(types[key])) for key in sorted(types)},
        )
        for (name, is_node), types in sorted(types_by_kind.items())
    ]

"""The graph in a Neo4j server. Not yet tried against a server: only what needs none is tested."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from activities.graph import statements
from activities.graph.model import GraphAway, GraphRefused, Limits, Query, Rows, Table
from config.graph_schema import GraphSchema

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_FORM = "neo4j://user:password@host:7687/database"
_CONNECT_SECONDS = 10


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
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise GraphAway(
                f"LONGHAUL_GRAPH_URL begins with {parts.scheme or 'nothing'!r}; it has the form "
                f"{_FORM}, and {', '.join(_SCHEMES)} are taken."
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(
            uri=f"{parts.scheme}://{host}{port}",
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            database=parts.path.strip("/") or None,
        )


class Neo4j:
    """The server at `url`; connected when it is first used.

    Raises:
        GraphAway: on construction, when the driver is not installed or the address is wrong.
    """

    def __init__(self, url: str, schema: GraphSchema, limits: Limits | None = None) -> None:
        self._address = Address.parse(url)
        self._schema = schema
        self._limits = limits or Limits()
        try:
            self._neo4j = importlib.import_module("neo4j")
        except ImportError:
            raise GraphAway(
                "LONGHAUL_GRAPH_URL names a Neo4j server, but its driver is not installed on this "
                "worker: run .venv/bin/python -m pip install '.[neo4j]' in the checkout, or unset "
                "the variable."
            ) from None
        user = self._address.user
        self._driver = self._neo4j.GraphDatabase.driver(
            self._address.uri,
            auth=(user, self._address.password or "") if user else None,
            connection_timeout=_CONNECT_SECONDS,
            connection_acquisition_timeout=_CONNECT_SECONDS * 2,
        )
        self._constrained = False

    def read(self, *queries: Query) -> list[Rows]:
        return self._run(queries, self._neo4j.READ_ACCESS)

    def write(self, *queries: Query) -> list[Rows]:
        if not self._constrained:
            # A change of the schema may not share a transaction with one of the data.
            for text in statements.constraints(self._schema):
                self._run((Query(text),), self._neo4j.WRITE_ACCESS)
            self._constrained = True
        return self._run(queries, self._neo4j.WRITE_ACCESS)

    def schema(self) -> list[Table]:
        nodes, relations, ends = self.read(
            Query("CALL db.schema.nodeTypeProperties() YIELD nodeLabels, propertyName, "
                  "propertyTypes RETURN nodeLabels, propertyName, propertyTypes"),
            Query("CALL db.schema.relTypeProperties() YIELD relType, propertyName, "
                  "propertyTypes RETURN relType, propertyName, propertyTypes"),
            Query("MATCH (a)-[r]->(b) RETURN DISTINCT type(r), labels(a), labels(b)"),
        )  # fmt: skip
        return tables_of(nodes.rows, relations.rows, ends.rows)

    def close(self) -> None:
        self._driver.close()

    def _run(self, queries: tuple[Query, ...], access: str) -> list[Rows]:
        errors = self._neo4j.exceptions
        try:
            with (
                self._driver.session(
                    database=self._address.database, default_access_mode=access
                ) as session,
                session.begin_transaction(timeout=self._limits.seconds) as transaction,
            ):
                found = [self._taken(transaction, query) for query in queries]
                transaction.commit()
                return found
        except (errors.AuthError, errors.TransientError, errors.DriverError, OSError) as error:
            raise GraphAway(
                f"The graph at {self._address.uri} was not reached: "
                f"{str(error).splitlines()[0][:300]}. See that the server runs and that "
                "LONGHAUL_GRAPH_URL has its address, user and password."
            ) from None
        except errors.Neo4jError as error:
            raise GraphRefused(str(error.message)[:1000]) from None

    def _taken(self, transaction: Any, query: Query) -> Rows:
        result = transaction.run(query.cypher, query.parameters)
        columns, size = list(result.keys()), 0
        rows: list[list[object]] = []
        for record in result:
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


_TYPES = {
    "String": "STRING",
    "Long": "INT64",
    "Double": "DOUBLE",
    "Boolean": "BOOL",
    "StringArray": "STRING[]",
}


def tables_of(
    nodes: list[list[Any]], relations: list[list[Any]], ends: list[list[Any]]
) -> list[Table]:
    """The server's own account of what it holds, as tables with ladybug's names of types.

    Args:
        nodes: Labels, property, types; a row for each property of each combination of labels.
        relations: The same with ":`TYPE`" for the labels.
        ends: Type of relation, labels of its start, labels of its end.
    """
    found: dict[tuple[str, bool], dict[str, set[str]]] = {}
    for labels, name, types in nodes:
        for label in labels:
            held = found.setdefault((label, True), {})
            if name is not None:
                held.setdefault(name, set()).update(types or [])
    for label, name, types in relations:
        held = found.setdefault((label.removeprefix(":").strip("`"), False), {})
        if name is not None:
            held.setdefault(name, set()).update(types or [])
    pairs: dict[str, set[tuple[str, str]]] = {}
    for kind, starts, stops in ends:
        joined = ("+".join(sorted(starts)), "+".join(sorted(stops)))
        pairs.setdefault(kind, set()).add(joined)
    return [
        Table(
            name=label,
            node=node,
            ends=[] if node else sorted(pairs.get(label, ())),
            properties={
                key: " or ".join(sorted(_TYPES.get(each, each) for each in held[key]))
                for key in sorted(held)
            },
        )
        for (label, node), held in sorted(found.items())
    ]

"""The back end for Neo4j, with a server by others that speaks its protocol."""

import sys
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import unquote

import pytest

from activities.requirements.graph import neo4j
from activities.requirements.graph.cypher import constraint_cypher
from activities.requirements.graph.interface import (
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from activities.requirements.graph.neo4j import Neo4jAddress, Neo4jGraph, build_neo4j_tables
from config.agent_files import load_agent
from tests.activities.requirements.graph.serving import Server

SCHEMA = load_agent("generalist").graph_schema
COUNT = GraphQuery("MATCH (n:Message) RETURN count(*)")
# Seconds of work, but no more: an abandoned query goes on in this server.
LONG = (
    "UNWIND range(1, 1500) AS a UNWIND range(1, 1500) AS b "
    "WITH a + b AS c RETURN c ORDER BY c LIMIT 3"
)
"""Takes a few seconds. The server continues it even if nobody waits any more."""


def test_an_address_with_all_its_parts() -> None:
    address = Neo4jAddress.parse("neo4j+s://tea:p%40ss@graph.example:7687/requirements")
    assert address.uri == "neo4j+s://graph.example:7687"
    assert (address.user, address.password, address.database) == ("tea", "p@ss", "requirements")
    assert "p@ss" not in repr(address)


@pytest.mark.parametrize("url", ["http://u:secret@host", "bolt://", "neo4j://u:secret@host:port"])
def test_what_is_no_address_is_told_without_its_password(url: str) -> None:
    with pytest.raises(GraphUnavailableError, match="it has the form neo4j://") as caught:
        Neo4jAddress.parse(url)
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "neo4j", None)
    with pytest.raises(GraphUnavailableError, match=r"pip install '\.\[neo4j\]'"):
        Neo4jGraph("bolt://localhost:1", SCHEMA)


def test_a_server_that_is_not_there() -> None:
    with (
        closing(Neo4jGraph("bolt://tea:secret@localhost:1", SCHEMA)) as graph,
        pytest.raises(GraphUnavailableError, match="cannot be used") as caught,
    ):
        graph.read(GraphQuery("RETURN 1"))
    assert "secret" not in str(caught.value)


@pytest.fixture
def graph(graph_server: Server) -> Iterator[Neo4jGraph]:
    graph_server.empty()
    with closing(Neo4jGraph(graph_server.url, SCHEMA)) as graph:
        yield graph


@pytest.fixture
def connected(graph: Neo4jGraph, graph_server: Server) -> Iterator[Neo4jGraph]:
    """Return a graph with one second for statements, and a connection, which is slow to open if the
    server gets little of the machine.
    """
    with closing(Neo4jGraph(graph_server.url, SCHEMA, GraphLimits(seconds=1))) as neo4j_graph:
        neo4j_graph.read(COUNT)
        yield neo4j_graph


@pytest.fixture
def hurried() -> Iterator[pytest.MonkeyPatch]:
    """Make statements give up soon after their time, until this is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neo4j, "_CONNECT_SECONDS", 0.2)
        patch.setattr(neo4j, "_GRACE_SECONDS", 0)
        yield patch


def test_values_come_as_they_were_put(graph: Neo4jGraph) -> None:
    put = {"id": "a", "whole": 1, "part": 1.5, "yes": True, "many": ["x", "y"], "none": None}
    graph.write(GraphQuery("CREATE (n:BusinessObject {id: 'b'}) SET n = $put", {"put": put}))
    graph.write(GraphQuery("MATCH (n:BusinessObject) CREATE (n)-[:PART_OF {w: 2}]->(:Message)"))
    [rows] = graph.read(GraphQuery("MATCH (n)-[r]->(m) RETURN n, r, m, {a: [n.id]}, null"))
    del put["none"]
    node = {"_label": "BusinessObject", **put}
    assert rows.rows == [
        [node, {"_label": "PART_OF", "w": 2}, {"_label": "Message"}, {"a": ["a"]}, None]
    ]
    relation, thing, other = sorted(graph.schema(), key=lambda table: (table.node, table.name))
    assert relation.ends == [("BusinessObject", "Message")]
    assert relation.properties == {"w": "INT64"}
    assert thing.properties == {
        "id": "STRING",
        "many": "STRING[]",
        "part": "DOUBLE",
        "whole": "INT64",
        "yes": "BOOL",
    }
    assert other.properties == {}


def test_a_second_node_with_the_same_key_is_not_made(graph: Neo4jGraph) -> None:
    graph.write(GraphQuery("CREATE (:Message {id: 'a'})"))
    with pytest.raises(GraphUnavailableError, match="a"):
        graph.write(GraphQuery("CREATE (:Message {id: 'a'})"))
    assert graph.read(COUNT)[0].rows == [[1]]


@pytest.mark.parametrize(
    ("old", "new"), [("4711@", "4712@"), ("/graph", "/nope")], ids=["password", "database"]
)
def test_who_is_not_let_in_waits(graph_server: Server, old: str, new: str) -> None:
    with (
        closing(Neo4jGraph(graph_server.url.replace(old, new), SCHEMA)) as graph,
        pytest.raises(GraphUnavailableError, match="LONGHAUL_GRAPH_URL has its address") as caught,
    ):
        graph.read(GraphQuery("RETURN 1"))
    assert "p@ssword" not in unquote(str(caught.value))


def test_a_query_that_takes_too_long_is_refused(
    connected: Neo4jGraph, hurried: pytest.MonkeyPatch
) -> None:
    answers = connected._is_answering

    def patiently() -> bool:
        """Use the usual time limits, as the old query goes on and may delay the next answer."""
        hurried.undo()
        return answers()

    hurried.setattr(connected, "_is_answering", patiently)
    with pytest.raises(GraphQueryError, match="more than 1 s"):
        connected.read(GraphQuery(LONG))
    assert connected.read(GraphQuery("RETURN 1"))[0].rows == [[1]]


def test_a_server_that_stands_still_is_away(
    graph_server: Server, connected: Neo4jGraph, hurried: pytest.MonkeyPatch
) -> None:
    with graph_server.frozen():
        for act in (connected.read, connected.write):
            with pytest.raises(GraphUnavailableError, match="does not answer"):
                act(GraphQuery("MERGE (:Message {id: 'a'})"))
    hurried.undo()
    connected.write(GraphQuery("MERGE (:Message {id: 'a'})"))
    assert connected.read(COUNT)[0].rows == [[1]]


def test_keys_become_constraints() -> None:
    assert constraint_cypher(SCHEMA)[0] == (
        "CREATE CONSTRAINT `Requirement_id` IF NOT EXISTS "
        "FOR (n:`Requirement`) REQUIRE n.`id` IS UNIQUE"
    )


def test_a_property_of_several_types_is_told_with_all() -> None:
    properties = [["Message", "n", "FLOAT NOT NULL"], ["Message", "n", "STRING NOT NULL"]]
    [table] = build_neo4j_tables([[["Message"]]], properties, [], [])
    assert table.properties == {"n": "DOUBLE or STRING"}


def test_a_kind_that_others_made_meanwhile_is_told() -> None:
    node, relation = build_neo4j_tables(
        [], [["Message", "n", "STRING NOT NULL"]], [], [["PART_OF", "w", "INTEGER NOT NULL"]]
    )
    assert (node.name, node.properties) == ("Message", {"n": "STRING"})
    assert (relation.name, relation.ends, relation.properties) == ("PART_OF", [], {"w": "INT64"})

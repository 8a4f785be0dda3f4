"""Neo4j, as far as no server is needed."""

from __future__ import annotations

import importlib.util

import pytest

from activities.graph import GraphAway, Query
from activities.graph.neo4j import Address, Neo4j, tables_of
from activities.graph.statements import constraints
from config.loader import load_agent

DRIVER = importlib.util.find_spec("neo4j") is not None
SCHEMA = load_agent("generalist").graph_schema


def test_an_address_with_all_its_parts() -> None:
    found = Address.parse("neo4j+s://tea:p%40ss@graph.example:7687/requirements")
    assert found.uri == "neo4j+s://graph.example:7687"
    assert (found.user, found.password, found.database) == ("tea", "p@ss", "requirements")
    assert "p@ss" not in repr(found)


@pytest.mark.parametrize("url", ["http://u:secret@host", "bolt://", "neo4j://u:secret@host:port"])
def test_what_is_no_address_is_told_without_its_password(url: str) -> None:
    with pytest.raises(GraphAway, match="it has the form neo4j://") as told:
        Address.parse(url)
    assert "secret" not in str(told.value)


@pytest.mark.skipif(DRIVER, reason="the driver is installed")
def test_a_missing_driver_is_told_with_what_to_do() -> None:
    with pytest.raises(GraphAway, match=r"pip install '\.\[neo4j\]'"):
        Neo4j("bolt://localhost:1", SCHEMA)


@pytest.mark.skipif(not DRIVER, reason="needs the extra neo4j")
def test_a_server_that_is_not_there() -> None:
    graph = Neo4j("bolt://tea:secret@localhost:1", SCHEMA)
    with pytest.raises(GraphAway, match="was not reached") as told:
        graph.read(Query("RETURN 1"))
    graph.close()
    assert "secret" not in str(told.value)


def test_keys_become_constraints() -> None:
    assert constraints(SCHEMA)[0] == (
        "CREATE CONSTRAINT `Requirement_id` IF NOT EXISTS "
        "FOR (n:`Requirement`) REQUIRE n.`id` IS UNIQUE"
    )


def test_the_servers_account_of_itself_as_tables() -> None:
    nodes: list[list[object]] = [
        [["Requirement"], "id", ["String"]],
        [["Requirement"], "confidence", ["Double", "String"]],
    ]
    ends: list[list[object]] = [["FULFILLED_BY", ["Requirement"], ["Message"]]]
    relation, node = tables_of(nodes, [[":`FULFILLED_BY`", None, None]], ends)
    assert node.properties == {"confidence": "DOUBLE or STRING", "id": "STRING"}
    assert (relation.name, relation.ends) == ("FULFILLED_BY", [("Requirement", "Message")])

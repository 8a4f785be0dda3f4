"""Which queries only read."""

import re

import pytest

from activities.requirements.graph.read_only_query import (
    is_read_query_ordered,
    query_refusal_reason,
)


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n:Requirement) RETURN n.id ORDER BY n.id LIMIT 3;",
        "match (n) where n.text contains 'please load and set' return n",
        "MATCH (n) RETURN n.`set`",
        "UNWIND range(1, 3) AS n RETURN n",
    ],
)
def test_reading_is_taken(query: str) -> None:
    assert query_refusal_reason(query, {}) == ""


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("CREATE (:BusinessObject {id: 'a'})", "Only reading"),
        ("MATCH (n) SET n.text = 'x'", "SET is not allowed"),
        ("MATCH (n) DETACH DELETE n", "DETACH is not allowed"),
        ("LOAD FROM '/etc/passwd' RETURN *", "Only reading"),
        ("MATCH (n) LOAD FROM '/etc/passwd' (file_format='csv') RETURN *", "LOAD is not allowed"),
        ("COPY (MATCH (n) RETURN n.id) TO '/tmp/x.csv'", "Only reading"),
        ("RETURN 1; COPY (MATCH (n) RETURN n.id) TO '/tmp/x.csv'", "one statement"),
        ("MATCH (n) CALL show_tables() RETURN *", "CALL is not allowed"),
        ("RETURN 'a\\' LOAD FROM '", "backslash"),
        ("RETURN 1 // '\nUNION LOAD FROM 'x RETURN 1", "comment"),
        ("RETURN 'open", "not closed"),
        ("RETURN " + "(" * 60 + "1" + ")" * 60, "nests"),
        ("MATCH (n {id: $id}) RETURN n", r"\$id"),
        ("RETURN " + "1 + " * 3000 + "1", "the most is"),
    ],
)
def test_all_else_is_refused(query: str, why: str) -> None:
    assert re.search(why, query_refusal_reason(query, {}))


def test_the_order_of_rows_is_the_querys_own_or_ours() -> None:
    assert is_read_query_ordered("MATCH (n) RETURN n ORDER  BY n.id")
    assert not is_read_query_ordered("MATCH (n) WHERE n.text = 'ORDER BY' RETURN n")

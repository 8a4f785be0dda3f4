"""What jobs may expect of any graph."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from activities.checkpoints import Root
from activities.requirements.graph import open_graph
from activities.requirements.graph.interface import (
    Graph,
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from config.agent_files import load_agent
from tests.backends import GRAPHS

SCHEMA = load_agent("generalist").graph_schema
PUT = "MERGE (n:BusinessObject {id: $id}) SET n.name = $name"
COUNT = GraphQuery("MATCH (n:BusinessObject) RETURN count(*)")

pytestmark = pytest.mark.parametrize("graph_place", GRAPHS, indirect=True)
Open = Callable[..., Graph]


@pytest.fixture
def opened(root: Root, graph_place: str) -> Iterator[Open]:
    with ExitStack() as graphs:
        yield lambda **limits: graphs.enter_context(open_graph(root, SCHEMA, GraphLimits(**limits)))


@pytest.fixture
def graph(opened: Open) -> Graph:
    return opened()


def test_what_was_written_is_read(graph: Graph) -> None:
    for _ in range(2):
        graph.write(GraphQuery(PUT, {"id": "invoice", "name": "Invoice"}))
    result = graph.read(GraphQuery("MATCH (n:BusinessObject) RETURN n, n.id AS id"))[0]
    assert result.columns == ["n", "id"]
    assert result.rows == [
        [{"_label": "BusinessObject", "id": "invoice", "name": "Invoice"}, "invoice"]
    ]
    assert not result.more


def test_a_write_is_whole_or_not_done(graph: Graph) -> None:
    wrong = "CREATE (:Nope {id: 'b'})" if graph.capabilities.enforces_schema else "Nope"
    with pytest.raises(GraphQueryError, match="Nope"):
        graph.write(GraphQuery(PUT, {"id": "a", "name": "A"}), GraphQuery(wrong))
    assert graph.read(COUNT)[0].rows == [[0]]


def test_reading_changes_nothing(graph: Graph) -> None:
    refused = pytest.raises(GraphQueryError, match="read-only")
    with refused if graph.capabilities.refuses_writes else suppress(GraphQueryError):
        graph.read(GraphQuery(PUT, {"id": "a", "name": "A"}))
    assert graph.read(COUNT)[0].rows == [[0]]


def test_writes_at_once_are_each_done_once_or_come_again(root: Root, graph: Graph) -> None:
    add = "MERGE (n:Requirement {id: $id}) SET n.confidence = coalesce(n.confidence, 0) + 1"

    def write(_: int) -> None:
        for number in range(5):
            while True:
                with suppress(GraphUnavailableError), open_graph(root, SCHEMA) as mine:
                    mine.write(GraphQuery(add, {"id": f"m{number}"}))
                    break

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    query = "MATCH (n:Requirement) RETURN n.id, n.confidence ORDER BY n.id"
    assert graph.read(GraphQuery(query))[0].rows == [[f"m{number}", 4] for number in range(5)]


def test_rows_bytes_and_memory_are_bounded(opened: Open) -> None:
    graph = opened(rows=10, bytes=1000)
    [many] = graph.read(GraphQuery("UNWIND range(1, 1000000) AS n RETURN n"))
    assert (len(many.rows), many.more) == (10, True)
    wide = GraphQuery("UNWIND range(1, 5) AS n RETURN $text", {"text": "x" * 400})
    [cut] = graph.read(wide)
    assert (len(cut.rows), cut.more) == (2, True)
    if graph.capabilities.limits_memory:
        with pytest.raises(GraphQueryError, match="memory"):
            graph.read(GraphQuery("RETURN range(1, 1000000000)"))
    assert graph.read(GraphQuery("RETURN 1"))[0].rows == [[1]]

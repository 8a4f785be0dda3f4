"""The embedded graph: several processes, killed ones, and queries that would not end."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints.locks import file_lock
from activities.requirements.graph.embedded import EmbeddedGraph
from activities.requirements.graph.interface import (
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from config.agent_files import load_agent
from config.schema.graph import GraphSchema
from tests.soak import patient, soak

_FORK = multiprocessing.get_context("fork")
PUT = "MERGE (n:BusinessObject {id: $id}) SET n.name = $name"
COUNT = GraphQuery("MATCH (n:BusinessObject) RETURN count(*), count(DISTINCT n.id)")
PARTS = (
    "UNWIND range(1, $size) AS part MERGE (n:%s {id: $start + CAST(part, 'STRING')}) "
    "SET n.name = repeat('x', 500)"
)
KILLED = """
import os, sys
import ladybug
database = ladybug.Database(sys.argv[1])
connection = ladybug.Connection(database)
for each in "bc":
    connection.execute("CREATE (:BusinessObject {id: $id})", {"id": each})
os._exit(0)
"""


@pytest.fixture
def schema() -> GraphSchema:
    return load_agent("generalist").graph_schema


@pytest.fixture
def graph(tmp_path: Path, schema: GraphSchema) -> EmbeddedGraph:
    return EmbeddedGraph(tmp_path / "graph", schema)


def write(folder: Path, first: int, last: int, size: int = 1) -> None:
    graph = EmbeddedGraph(folder, load_agent("generalist").graph_schema)
    for number in range(first, last):
        start = {"start": f"{number}.", "size": size}
        graph.write(*(GraphQuery(PARTS % kind, start) for kind in ("BusinessObject", "Message")))


def writer(*told: Any) -> multiprocessing.process.BaseProcess:
    process = _FORK.Process(target=write, args=told)
    process.start()
    return process


def test_a_schema_that_grew_adds_to_the_graph(tmp_path: Path, graph: EmbeddedGraph) -> None:
    graph.write(GraphQuery(PUT, {"id": "a", "name": "A"}))
    more = {"nodes": {"BusinessObject": {"key": "id", "properties": {
        "id": {"type": "text", "required": True}, "owner": {"type": "text"}}},
        "Team": {"key": "id", "properties": {"id": {"type": "text"}}}},
        "relations": {"OWNS": {"ends": [["Team", "BusinessObject"]]}}}  # fmt: skip
    grown = EmbeddedGraph(tmp_path / "graph", GraphSchema.model_validate(more))
    rows = grown.read(GraphQuery("MATCH (n:BusinessObject) RETURN n.name, n.owner"))[0].rows
    assert rows == [["A", None]]
    owns = next(table for table in grown.schema() if table.name == "OWNS")
    assert owns.ends == [("Team", "BusinessObject")]


def test_a_killed_writer_leaves_nothing_half_done_and_no_lock(
    tmp_path: Path, graph: EmbeddedGraph
) -> None:
    halves = GraphQuery("MATCH (n:Message) RETURN count(*)")
    size = 2000
    graph.read(COUNT)
    for round_, pause in enumerate(soak((0.6,), (0.2, 0.4, 0.6, 0.8))):
        worker = writer(tmp_path / "graph", round_ * 100, round_ * 100 + 100, size)
        time.sleep(pause)
        for child in children(worker.pid or 0):
            # A process that has just finished ends by itself.
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        worker.kill()
        worker.join()
        started = time.monotonic()
        [objects], [messages] = (rows.rows for rows in graph.read(COUNT, halves))
        assert time.monotonic() - started < patient(10)
        assert objects[0] == objects[1] == messages[0]
        assert int(str(objects[0])) % size == 0
        # The retry.
        write(tmp_path / "graph", round_ * 100, round_ * 100 + 1, size)
    assert graph.read(COUNT)[0].rows[0][0] == graph.read(halves)[0].rows[0][0]


@pytest.fixture
def log(tmp_path: Path, graph: EmbeddedGraph) -> Path:
    """Return the log of a graph with one node, left by an engine that was killed after it stored
    two more.
    """
    graph.write(GraphQuery(PUT, {"id": "a", "name": "A"}))
    database = tmp_path / "graph" / "graph.lbug"
    subprocess.run([sys.executable, "-c", KILLED, str(database)], check=True)
    return Path(f"{database}.wal")


def test_half_a_record_at_the_end_of_the_log_keeps_nobody_out(
    graph: EmbeddedGraph, log: Path
) -> None:
    stored = log.read_bytes()
    torn = stored[: len(stored) * 3 // 4]
    log.write_bytes(torn)
    assert graph.read(COUNT)[0].rows == [[2, 2]]
    graph.write(GraphQuery(PUT, {"id": "d", "name": "D"}))
    assert graph.read(COUNT)[0].rows == [[3, 3]]
    assert Path(f"{log}.torn").read_bytes() == torn


def test_a_writer_that_was_killed_in_its_checkpoint_keeps_nobody_out(
    graph: EmbeddedGraph, log: Path
) -> None:
    # As the engine does when it begins a checkpoint.
    log.rename(f"{log}.checkpoint")
    log.with_name("graph.lbug.checkpoint.intent.lock").touch()
    assert graph.read(COUNT)[0].rows == [[3, 3]]
    assert not Path(f"{log}.checkpoint").exists()


def children(pid: int) -> list[int]:
    """Return the child processes of this parent, from /proc."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            pids.append(int(path.parent.name))
    return pids


def test_a_runaway_query_ends_and_frees_the_lock(
    tmp_path: Path, schema: GraphSchema, graph: EmbeddedGraph
) -> None:
    graph.read(COUNT)
    short = EmbeddedGraph(tmp_path / "graph", schema, GraphLimits(wait_seconds=1, seconds=1))
    endless = (
        "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b "
        "WITH a + b AS c RETURN c ORDER BY c LIMIT 3"
    )
    started = time.monotonic()
    with pytest.raises(GraphQueryError, match="stopped"):
        short.read(GraphQuery(endless))
    assert time.monotonic() - started < patient(10)
    assert graph.read(COUNT)[0].rows == [[0, 0]]


def test_a_query_that_heeds_no_time_limit_is_killed(
    tmp_path: Path, schema: GraphSchema, graph: EmbeddedGraph
) -> None:
    graph.read(COUNT)
    short = EmbeddedGraph(tmp_path / "graph", schema, GraphLimits(wait_seconds=1, seconds=1))
    nested = "RETURN " + "(" * 20_000 + "1" + ")" * 20_000
    with pytest.raises(GraphQueryError, match=r"stopped|crashed"):
        short.read(GraphQuery(nested))
    assert graph.read(COUNT)[0].rows == [[0, 0]]


def test_a_lock_that_another_keeps_is_no_failure_of_the_query(
    tmp_path: Path, schema: GraphSchema
) -> None:
    graph = EmbeddedGraph(tmp_path / "graph", schema, GraphLimits(wait_seconds=0.3))
    graph.read(COUNT)
    with (
        file_lock(tmp_path / "graph" / "lock", seconds=1),
        pytest.raises(GraphUnavailableError, match="others have been using it"),
    ):
        graph.read(COUNT)


def test_a_damaged_database_is_named(tmp_path: Path, graph: EmbeddedGraph) -> None:
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "graph.lbug").write_bytes(b"no database" * 1000)
    with pytest.raises(GraphUnavailableError, match="from a backup"):
        graph.read(COUNT)

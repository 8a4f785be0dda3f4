"""A graph server by other people: ArcadeDB, which speaks Neo4j's protocol and Cypher."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from activities.requirements.graph.interface import GraphQuery, GraphUnavailableError
from activities.requirements.graph.neo4j import Neo4jGraph
from config.schema.graph import GraphSchema
from engine.free_ports import free_port

FETCHED = Path(__file__).parents[3] / ".fetched/graph/arcadedb_embedded"
PASSWORD = "a p@ssword: 4711"
STARTS_SECONDS = 240


@dataclass
class Server:
    url: str
    """Address with user, password and the only database."""
    process: subprocess.Popen[bytes]

    def empty(self) -> None:
        graph = Neo4jGraph(self.url, GraphSchema())
        graph.write(GraphQuery("MATCH (n) DETACH DELETE n"))
        graph.close()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self.process.send_signal(signal.SIGSTOP)
        # On a busy machine its threads run on and answer for a while before all are stopped.
        os.waitpid(self.process.pid, os.WUNTRACED)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    java = FETCHED / "jre/bin/java"
    if not java.exists():
        pytest.skip("the graph server is not there; `make develop` fetches it where it runs")
    bolt, http = free_port(), free_port()
    settings = {
        "server.rootPath": folder,
        "server.databaseDirectory": folder / "databases",
        "server.rootPassword": PASSWORD,
        "server.defaultDatabases": "graph[root]",
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.httpIncomingHost": "127.0.0.1",
        "server.httpIncomingPort": http,
        "bolt.host": "127.0.0.1",
        "bolt.port": bolt,
    }
    with (folder / "said.txt").open("wb") as log:
        process = subprocess.Popen(
            [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
             *(f"-Darcadedb.{name}={value}" for name, value in settings.items()),
             "-cp", f"{FETCHED}/jars/*", "com.arcadedb.server.ArcadeDBServer"],
            stdout=log, stderr=log, cwd=folder, env={"PATH": os.defpath},
        )  # fmt: skip
    server = Server(f"bolt://root:{quote(PASSWORD, safe='')}@127.0.0.1:{bolt}/graph", process)
    try:
        _until_it_answers(server, folder / "said.txt")
        yield server
    finally:
        process.kill()
        process.wait()


def _until_it_answers(server: Server, log: Path) -> None:
    until = time.monotonic() + STARTS_SECONDS
    while True:
        try:
            return server.empty()
        except GraphUnavailableError:
            if server.process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"the graph server does not start: {log.read_text()[-2000:]}")
        time.sleep(0.2)

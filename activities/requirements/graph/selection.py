"""Which graph it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from activities.checkpoints import Root
from activities.requirements.graph.embedded import EmbeddedGraph
from activities.requirements.graph.interface import Graph, GraphLimits
from activities.requirements.graph.neo4j import Neo4jGraph, ServerAddress, load_driver
from config.schema.graph import GraphSchema


def graph_url() -> str | None:
    """Of the server, when it is not the embedded graph. It may hold a password."""
    return os.environ.get("LONGHAUL_GRAPH_URL") or None


def graph_folder(root: Path) -> Path:
    """Where the embedded graph of a workspaces root lies."""
    return root / ".longhaul" / "graph"


def check_graph_address() -> None:
    """Look at the address that the environment gives, if it does, and ask nobody.

    Raises:
        GraphUnavailableError: it is none, or its driver is not installed.
    """
    if url := graph_url():
        ServerAddress.parse(url)
        load_driver()


@contextmanager
def open_graph(
    root: Root,
    schema: GraphSchema,
    heartbeat: Callable[[], None] | None = None,
    limits: GraphLimits | None = None,
) -> Iterator[Graph]:
    """The graph of the workspaces root, or the one at LONGHAUL_GRAPH_URL.

    Raises:
        GraphUnavailableError: it cannot be reached, or the address or the driver is wrong.
    """
    url = graph_url()
    graph: Graph = (
        Neo4jGraph(url, schema, limits, heartbeat)
        if url
        else EmbeddedGraph(graph_folder(root.path), schema, limits, heartbeat)
    )
    try:
        yield graph
    finally:
        graph.close()

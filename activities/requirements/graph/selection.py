"""Which graph it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from activities.checkpoints import Root
from activities.requirements.graph.embedded import Embedded
from activities.requirements.graph.interface import Graph, Limits
from activities.requirements.graph.neo4j import Address, Neo4j, driver
from config.schema.graph import GraphSchema


def graph_url() -> str | None:
    """Of the server, when it is not the embedded graph. It may hold a password."""
    return os.environ.get("LONGHAUL_GRAPH_URL") or None


def graph_folder(root: Path) -> Path:
    """Where the embedded graph of a workspaces root lies."""
    return root / ".longhaul" / "graph"


def check_address() -> None:
    """Look at the address that the environment gives, if it does, and ask nobody.

    Raises:
        GraphAway: it is none, or its driver is not installed.
    """
    if url := graph_url():
        Address.parse(url)
        driver()


@contextmanager
def open_graph(
    root: Root,
    schema: GraphSchema,
    heartbeat: Callable[[], None] | None = None,
    limits: Limits | None = None,
) -> Iterator[Graph]:
    """The graph of the workspaces root, or the one at LONGHAUL_GRAPH_URL.

    Raises:
        GraphAway: it cannot be reached, or the address or the driver is wrong.
    """
    url = graph_url()
    graph: Graph = (
        Neo4j(url, schema, limits, heartbeat)
        if url
        else Embedded(graph_folder(root.path), schema, limits, heartbeat)
    )
    try:
        yield graph
    finally:
        graph.close()

"""The graph that jobs share: embedded by default, or Neo4j."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from activities.checkpoints import Root
from activities.requirements.graph.embedded import EmbeddedGraph, embedded_graph_folder
from activities.requirements.graph.interface import Graph, GraphLimits
from activities.requirements.graph.neo4j import Neo4jAddress, Neo4jGraph, load_driver
from config.schema.graph import GraphSchema


def selected_graph_url() -> str | None:
    """Return the server's address, possibly with a password; None for the embedded graph."""
    return os.environ.get("LONGHAUL_GRAPH_URL") or None


def check_selected_graph_url() -> None:
    """Check the address in the environment, if any, without connecting.

    Raises:
        GraphUnavailableError: The address is invalid, or the driver is not installed.
    """
    if url := selected_graph_url():
        Neo4jAddress.parse(url)
        load_driver()


@contextmanager
def open_graph(
    root: Root, schema: GraphSchema, limits: GraphLimits | None = None
) -> Iterator[Graph]:
    """Open the graph at LONGHAUL_GRAPH_URL, else the one of the workspaces root.

    Raises:
        GraphUnavailableError: It is unreachable, or the address or the driver is wrong.
    """
    url = selected_graph_url()
    graph: Graph = (
        Neo4jGraph(url, schema, limits)
        if url
        else EmbeddedGraph(embedded_graph_folder(root.path), schema, limits)
    )
    try:
        yield graph
    finally:
        graph.close()

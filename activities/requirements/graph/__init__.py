"""The graph that jobs share: embedded by default, or Neo4j."""

from activities.requirements.graph.interface import (
    Graph,
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from activities.requirements.graph.selection import (
    check_graph_address,
    graph_folder,
    graph_url,
    open_graph,
)

__all__ = [
    "Graph",
    "GraphLimits",
    "GraphQuery",
    "GraphQueryError",
    "GraphUnavailableError",
    "check_graph_address",
    "graph_folder",
    "graph_url",
    "open_graph",
]

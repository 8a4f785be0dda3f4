"""The graph that jobs share: embedded by default, or Neo4j."""

from activities.requirements.graph.interface import Graph, GraphAway, GraphRefused, Limits, Query
from activities.requirements.graph.selection import (
    check_address,
    graph_folder,
    graph_url,
    open_graph,
)

__all__ = [
    "Graph",
    "GraphAway",
    "GraphRefused",
    "Limits",
    "Query",
    "check_address",
    "graph_folder",
    "graph_url",
    "open_graph",
]

"""The graph that jobs share: embedded by default, or Neo4j."""

from activities.requirements.graph.embedded import embedded_graph_folder
from activities.requirements.graph.interface import (
    Graph,
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from activities.requirements.graph.selection import (
    check_selected_graph_url,
    open_graph,
    selected_graph_url,
)

__all__ = [
    "Graph",
    "GraphLimits",
    "GraphQuery",
    "GraphQueryError",
    "GraphUnavailableError",
    "check_selected_graph_url",
    "embedded_graph_folder",
    "open_graph",
    "selected_graph_url",
]

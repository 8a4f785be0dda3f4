"""The command graph: what the graph of requirements has, by a query that reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Json
from cli.output import OK, UserError, escape_controls, print_json, print_result
from cli.root_access import run_with_root

if TYPE_CHECKING:
    from activities.checkpoints import Root
    from activities.requirements.graph.interface import GraphRows

EVERYTHING = (
    "MATCH (r:Requirement)-[f]->(o) RETURN r.id, label(f), label(o), o.id ORDER BY r.id, o.id"
)


def graph(
    query: Annotated[
        str,
        typer.Argument(help="Cypher that reads; without it, all relations of requirements."),
    ] = EVERYTHING,
    json: Json = False,
) -> int:
    """Read the graph of requirements: `starter.py graph "MATCH (r:Requirement) RETURN r.id"`.

    Queries that write are refused. Needs no server.
    """
    from activities.requirements.graph import open_graph  # noqa: PLC0415
    from activities.requirements.graph.interface import (  # noqa: PLC0415 - loads the activities
        GraphQuery,
        GraphQueryError,
        GraphUnavailableError,
    )
    from activities.requirements.graph.read_only_query import (  # noqa: PLC0415
        is_read_query_ordered,
        query_refusal_reason,
    )
    from activities.requirements.graph.render import render_rows  # noqa: PLC0415
    from config.agent_files import load_agent  # noqa: PLC0415

    if why := query_refusal_reason(query, {}):
        raise UserError(f"graph: {why}")
    schema = load_agent("validator").graph_schema

    def read(root: Root) -> GraphRows:
        with open_graph(root, schema) as opened:
            return opened.read(GraphQuery(query))[0]

    try:
        result = run_with_root(read)
    except (GraphQueryError, GraphUnavailableError) as error:
        raise UserError(f"graph: {error}") from None
    if json:
        print_json({"columns": result.columns, "rows": result.rows})
        return OK
    print_result(escape_controls(render_rows(result, keep_order=is_read_query_ordered(query))))
    return OK

"""The command `traces`: what was refused or corrected in any job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.options import Json
from cli.output import OK, UserError, print_json, print_note, print_result
from cli.root_access import run_with_root
from protocol.trace_requests import TraceType

if TYPE_CHECKING:
    from activities.checkpoints import Root

MOST = 1_000_000
"""Maximum number of traces listed; databases accept no larger number."""


def traces(
    query: Annotated[
        str, typer.Argument(help="A situation, in words; the newest traces if left out.")
    ] = "",
    job: Annotated[str, typer.Option(help="Only traces of this job.")] = "",
    type: Annotated[TraceType | None, typer.Option(help="Only traces of this type.")] = None,
    guard: Annotated[str, typer.Option(help="Only traces of this guard, gate or pattern.")] = "",
    level: Annotated[
        Literal["metadata", "summary", "full"], typer.Option(help="Level of detail.")
    ] = "summary",
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number.")] = 20,
    universal: Annotated[
        str,
        typer.Option(
            help="Let every project find the trace with this number.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = "",
    json: Json = False,
) -> int:
    """List what guards, gates and people refused or corrected in any job. Needs no server."""
    from activities.stores import stored_traces as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from activities.traces.trace_search import TraceSearchScope, find_traces  # noqa: PLC0415
    from activities.traces.trace_text import render_trace  # noqa: PLC0415

    number = _parse_trace_number(universal) if universal else None

    def fetch_rows(root: Root) -> list[Any]:
        store = RelationalStore(root)
        if number is not None:
            if not store.run(lambda c: rows.make_stored_trace_universal(c, number)):
                raise UserError(f"there is no trace {universal}; `starter.py traces` names them")
            return [store.read(lambda c: rows.find_trace(c, number))]
        only = {"job": job, "type": type or "", "guard": guard}
        if not query:
            return list(store.read(lambda c: rows.list_stored_traces(c, **only, limit=limit)))
        return find_traces(
            root,
            TraceSearchScope("", "", everything=True),
            query,
            limit,
            is_wanted=lambda row: all(v in ("", getattr(row, k)) for k, v in only.items()),
        )

    trace_rows = run_with_root(fetch_rows)
    if json:
        print_json([dict(row._mapping) for row in trace_rows])
        return OK
    for row in trace_rows:
        print_result(render_trace(row, level) + ("\n" if level == "full" else ""))
    if not trace_rows:
        print_note("no traces")
    return OK


def _parse_trace_number(text: str) -> int:
    """Parse the number of a trace, with or without the T."""
    if not re.fullmatch(r"T?[0-9]{1,18}", text):
        raise UserError(f"--universal {text}: expected the number of a trace, such as 96 or T96")
    return int(text.removeprefix("T"))

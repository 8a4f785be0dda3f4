"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Job = Annotated[str, typer.Argument(help="Id of the job, as `list` shows it.", metavar="JOB")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        help="Configuration for this job alone, such as limits.rewinds=3.", metavar="KEY=VALUE"
    ),
]

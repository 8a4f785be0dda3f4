"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Job = Annotated[str, typer.Argument(help="Id of the job, as `list` shows it.", metavar="JOB")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

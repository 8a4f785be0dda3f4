"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

MOMENT = "The start of this phase, or `now`."

Job = Annotated[str, typer.Argument(help="Id of the job, as `list` shows it.", metavar="JOB")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Team = Annotated[
    str,
    typer.Option(
        help="Team whose quota it counts for, and whose spend it is; that in LONGHAUL_TEAM if left "
        "out.",
        metavar="NAME",
        envvar="LONGHAUL_TEAM",
        show_envvar=False,
    ),
]
Repository = Annotated[
    str | None,
    typer.Option(help="Git repository to work on: its address, without a password.", metavar="URL"),
]
Ref = Annotated[
    str | None, typer.Option(help="Its branch, tag or commit; the checked-out one if left out.")
]
Depth = Annotated[
    int | None, typer.Option(min=1, help="Commits of its history to fetch; all if left out.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        help="Local folder to work on instead, without the files that its .gitignore names.",
        metavar="PATH",
    ),
]
Subfolder = Annotated[str, typer.Option(help="The folder in it to work in.", metavar="PATH")]
TokenVariable = Annotated[
    str | None,
    typer.Option(help="Variable of the worker with a token for it.", metavar="NAME"),
]
Publish = Annotated[
    str | None,
    typer.Option(help="Push the finished work to this branch, once.", metavar="BRANCH"),
]
PublishTo = Annotated[str, typer.Option(help="Another repository to push to.", metavar="URL")]
ApprovePublish = Annotated[
    bool, typer.Option("--approve-publish", help="Push only once a person has approved it.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        help="Configuration for this job alone, such as limits.rewinds=3.", metavar="KEY=VALUE"
    ),
]

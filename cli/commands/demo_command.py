"""The command `demo`: server, worker and a job at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import Json
from cli.temporal_errors import run_server_work


def demo(
    document: Annotated[
        Path | None, typer.Option(help="Document to work on; a shipped one if left out.")
    ] = None,
    agent: Annotated[
        str, typer.Option(help="Agent that does the job; creator and then mender if left out.")
    ] = "creator",
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep running afterwards, with the Web UI, until Ctrl-C.")
    ] = False,
    json: Json = False,
) -> int:
    """Show everything at once: server, worker and a real job, in this process.

    Uses the model of OPENAI_BASE_URL or OPENAI_API_KEY if set, else a rehearsal model that needs no
    network. The files stay in the workspaces folder.
    """
    from cli.demo import run_demo  # noqa: PLC0415 - loads the worker, which others do without

    return run_server_work(run_demo(agent, document, keep=keep, json=json))

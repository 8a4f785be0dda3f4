"""Hooks as scripts on disk, as somebody would bring them along."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from protocol.requests import ToolReply
from tests.activities.standing import Standing


def script(path: Path, body: str) -> str:
    """Write a Python script that has the event in `event`; return the command that runs it."""
    path.write_text(
        f"import json, os, signal, subprocess, sys, time\nevent = json.load(sys.stdin)\n{body}\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def hook(path: Path, body: str, **details: Any) -> dict[str, Any]:
    """Return a hook that runs that script, named after the file."""
    return {"name": path.stem, "command": script(path, body), **details}


def begin(path: Path, event: str, *bodies: str, **details: Any) -> Standing:
    hooks = [
        hook(path / f"h{n}.py", body, **{"timeout": 60, **details}) for n, body in enumerate(bodies)
    ]
    return Standing.begin(path, set={"hooks": {event: hooks}})


def call(job: Standing, name: str, **arguments: Any) -> tuple[ToolReply, str]:
    """Call a tool in a regular activity; return the reply and what the model sees."""
    job.reply((name, json.dumps(arguments)))
    reply = job.run(name, job.request(), local=False)
    job.commit = reply.commit
    answer: str = job.open().conversation.messages()[-1].get("content") or ""
    return reply, answer


def say(answer: object) -> str:
    return f"print({json.dumps(json.dumps(answer))})"

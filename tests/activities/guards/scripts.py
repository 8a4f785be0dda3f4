"""Hooks as scripts on disk, as somebody would bring them along."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any


def script(path: Path, body: str) -> str:
    """A Python script that has the event in `event`; gives the command that runs it."""
    path.write_text(
        f"import json, os, signal, subprocess, sys, time\nevent = json.load(sys.stdin)\n{body}\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def hook(path: Path, body: str, **details: Any) -> dict[str, Any]:
    """A hook of that script, named after the file."""
    return {"name": path.stem, "command": script(path, body), **details}

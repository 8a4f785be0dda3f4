"""How people call our programs: as scripts and `make` in a checkout, or as installed commands."""

import re
import sys
from pathlib import Path

INSTALLED = "longhaul"
"""Name of the installed command; in a checkout it is `starter.py`."""
INSTALLED_WORKER = f"{INSTALLED}-worker"
KEEP_DEMO = "make demo ARGS=--keep"
"""Runs the demo's server, worker and Web UI until Ctrl-C."""
_IN_PLACE_OF = {
    KEEP_DEMO: f"{INSTALLED} demo --keep",
    "starter.py": INSTALLED,
    "worker.py": INSTALLED_WORKER,
}
_CHECKOUT = re.compile(
    rf"{re.escape(KEEP_DEMO)}|(?:python )?\b(?P<script>(?:starter|worker)\.py)\b"
)


def name_running_program(text: str) -> str:
    """Replace commands of a checkout in a text by the installed ones, if one of them runs."""
    if Path(sys.argv[0]).stem not in (INSTALLED, INSTALLED_WORKER):
        return text
    return _CHECKOUT.sub(lambda found: _IN_PLACE_OF[found["script"] or found[0]], text)

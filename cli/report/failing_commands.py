"""Commands that a job ran, from the system's log. Pure."""

from __future__ import annotations

import json

from activities.redaction.secrets import redact
from cli.report.deciding_program import deciding_program
from protocol.short_text import one_line

MOST_LINES = 5000
"""Newest log lines that are read."""


def failing_commands(log: str) -> list[str]:
    """Return commands whose last run failed, such as `make test: exit code 1`.

    Args:
        log: Text of `commands/log.jsonl`. Commands such as `ls` are ignored, since their exit code
            means nothing.
    """
    last: dict[str, str] = {}
    for written in log.rstrip("\n").split("\n")[-MOST_LINES:]:
        try:
            entry = json.loads(written)
            command, code, trouble = entry["command"], entry["exit_code"], entry["trouble"]
        except (ValueError, KeyError, TypeError):
            continue
        ended = trouble or (f"exit code {code}" if code else "")
        last[str(command)] = str(ended)
    return [
        f"{one_line(redact(command), 100)}: {ended}"
        for command, ended in last.items()
        if ended and deciding_program(command)
    ]

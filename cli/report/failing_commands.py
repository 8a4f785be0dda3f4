"""Commands that a job ran, from the system's log. Pure."""

import json
import re
import shlex

from activities.redaction.secrets import redact
from protocol.short_text import one_line

MOST_LINES = 5000
"""Newest log lines that are read."""
DISPLAY_PROGRAMS = frozenset(
    {":", "[", "cat", "cd", "cut", "echo", "exit", "file", "find", "grep", "head", "less", "ls"}
    | {"mkdir", "printf", "pwd", "sed", "set", "sort", "stat", "tail", "tee", "test", "tree"}
    | {"true", "wc", "which"}
)
"""Programs that show, count or print; their exit code says nothing about a product."""
_SEPARATORS = {";", "&", "&&", "||", "|", ";;", "|&"}


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


def deciding_program(command: str) -> str:
    """Return the program whose failure the exit code would show; empty if there is none.

    For `a; b | c` it is `c`; for `a && b` it is `b`, or `a` if `b` only shows or prints.
    """
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
        words = list(lexer)
    except ValueError:
        return ""
    parts: list[list[str]] = [[]]
    joined: list[str] = []
    for word in words:
        # The lexer joins brackets with an adjacent operator into one word.
        if (operator := word.strip("()")) in _SEPARATORS:
            if parts[-1]:
                parts.append([])
                joined.append(operator)
        else:
            parts[-1].append(word)
    if not parts[-1]:
        parts.pop()
    while parts:
        if (name := _program_of_simple_command(parts.pop())) and name not in DISPLAY_PROGRAMS:
            return name
        if not parts or joined[len(parts) - 1] != "&&":
            break
    return ""


def _program_of_simple_command(words: list[str]) -> str:
    """Return the program that a simple command starts, skipping variables and brackets."""
    for word in words:
        if not re.fullmatch(r"\w+=.*|[({)}]+|!", word, re.DOTALL):
            return word.rpartition("/")[2]
    return ""

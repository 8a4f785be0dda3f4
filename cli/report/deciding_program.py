"""Which program decides a command line's exit code."""

from __future__ import annotations

import re
import shlex

DISPLAY_PROGRAMS = frozenset(
    {":", "[", "cat", "cd", "cut", "echo", "exit", "file", "find", "grep", "head", "less", "ls"}
    | {"mkdir", "printf", "pwd", "sed", "set", "sort", "stat", "tail", "tee", "test", "tree"}
    | {"true", "wc", "which"}
)
"""Programs that show, count or print; their exit code says nothing about a product."""
_SEPARATORS = {";", "&", "&&", "||", "|", ";;", "|&"}


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

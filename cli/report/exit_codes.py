"""What a command line can show by its exit code: whether a program's own decides it."""

from __future__ import annotations

import re
import shlex

DISPLAY_PROGRAMS = frozenset(
    {":", "[", "cat", "cd", "cut", "echo", "exit", "file", "find", "grep", "head", "less", "ls"}
    | {"mkdir", "printf", "pwd", "sed", "set", "sort", "stat", "tail", "tee", "test", "tree"}
    | {"true", "wc", "which"}
)
"""Programs that show, count or print; what they end with says nothing of what a product does."""
_SEPARATORS = {";", "&", "&&", "||", "|", ";;", "|&"}


def deciding_program(command: str) -> str:
    """The program whose failure the exit code would show; empty when it would show none's.

    Of `a; b | c` it is `c`, and of `a && b` it is `a` or `b`: a program that only looks or prints
    is passed over where another one before `&&` decides as well.
    """
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
        words = list(lexer)
    except ValueError:
        return ""
    parts: list[list[str]] = [[]]
    joined: list[str] = []
    for word in words:
        # Brackets that stand beside an operator come as one word with it.
        if (operator := word.strip("()")) in _SEPARATORS:
            if parts[-1]:
                parts.append([])
                joined.append(operator)
        else:
            parts[-1].append(word)
    if not parts[-1]:
        parts.pop()
    while parts:
        if (name := _program_name(parts.pop())) and name not in DISPLAY_PROGRAMS:
            return name
        if not parts or joined[len(parts) - 1] != "&&":
            break
    return ""


def _program_name(words: list[str]) -> str:
    """The name of what a simple command starts, its variables and brackets left aside."""
    for word in words:
        if not re.fullmatch(r"\w+=.*|[({)}]+|!", word, re.DOTALL):
            return word.rpartition("/")[2]
    return ""

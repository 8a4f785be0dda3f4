"""Keeps a filter at the end of a pipe from hiding that the command before it failed."""

from __future__ import annotations

import shlex

FILTERS = frozenset(
    ("cat", "column", "cut", "fold", "nl", "rev", "sort", "tac", "tail", "tee", "tr", "uniq", "wc")
)
"""Programs that read their whole input and end with 0 whatever it says. `head` and `sed` may stop
reading early, which would make the command before them fail."""
_SUBSTITUTIONS = ("$(", "`")
_OPERATORS = ";&|()\n"


def with_pipefail(command: str) -> str:
    """Return the shell line for a check, in which the failure of any part of a pipe counts.

    It is the command itself unless every pipe ends in a filter: after `… | grep -q refused` the
    exit code is a statement about the output, and the command before it may well fail. The same
    is true of a pipe whose output is substituted, as in `test $(grep refused log | wc -l) = 0`.
    """
    if any(mark in command for mark in _SUBSTITUTIONS):
        return command
    ends = _pipe_ends(command)
    if not ends or not all(end in FILTERS for end in ends):
        return command
    return f"exec bash --noprofile --norc -o pipefail -c {shlex.quote(command)}"


def simple_commands(command: str) -> list[list[str]]:
    """Return the words of each simple command, in order; none if the shell cannot read the line."""
    commands, words = list[list[str]](), list[str]()
    for word in [*_shell_words(command), ";"]:
        if set(word) <= set(_OPERATORS):
            commands += [words] if words else []
            words = []
        else:
            words.append(word)
    return commands


def _shell_words(command: str) -> list[str]:
    """Return the words of a command line, operators among them."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.commenters, lexer.whitespace, lexer.whitespace_split = "", " \t\r", True
    try:
        return list(lexer)
    except ValueError:
        # The shell says what is wrong.
        return []


def _pipe_ends(command: str) -> list[str]:
    """Return the last program of each pipe, without its folder."""
    words = _shell_words(command)
    ends, end, is_piped, is_first = list[str](), "", False, True
    for word in [*words, ";"]:
        if set(word) <= set(_OPERATORS):
            # A pipe may follow a closing bracket without a space.
            is_pipe = "|" in word and "||" not in word
            ends += [end] if is_piped and not is_pipe else []
            is_piped, is_first = is_pipe, True
        elif is_first:
            end, is_first = word.rpartition("/")[2], False
    return ends

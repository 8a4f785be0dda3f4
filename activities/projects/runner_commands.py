"""Commands that run tests: which of them can prove something, and whether their runner is there."""

from __future__ import annotations

import re
import shlex

INSPECTION_PROGRAMS = frozenset(
    {":", "[", "cat", "cd", "cut", "echo", "env", "file", "find", "grep", "head", "less", "ls"}
    | {"mkdir", "printf", "pwd", "sed", "sort", "stat", "tail", "tee", "test", "tree", "wc"}
    | {"which", "export", "sleep", "cp", "rm", "touch"}
)
"""Programs that show, count or prepare; their exit code says nothing about a product."""
FORBIDDEN = frozenset(
    {"!", ".", "alias", "eval", "exec", "exit", "false", "set", "source", "trap", "true", "unset"}
    | {"unalias", "builtin", "command", "kill", "enable", "hash", "shopt", "return", "disown"}
)
"""Shell words that detach the exit code from the tests."""
VARIABLES = re.compile(
    r"(?:PATH|BASH_ENV|ENV|BASH_FUNC\w*|LD_\w+|PYTEST_\w+|PYTHONHOME|PYTHONSTARTUP|GOFLAGS|HOME)"
    r"\+?=",
)
"""Variables that decide which programs run or what a runner does."""
SELECTION_OPTIONS = frozenset(
    {"-k", "--deselect", "--collect-only", "--co", "--junitxml", "--junit-xml"}
    | {"-x", "--exitfirst", "--maxfail", "--failfast"}
)
"""Options that run only some of the tests, or write the report where it is not read."""
_CODE = frozenset({"-c", "-ec", "-lc", "-uc"})
_CODE_OF_OTHERS = frozenset({"-e", "-r", "--eval", "eval", "-p"})
_INLINE = {
    **dict.fromkeys(("python", "sh", "bash", "dash", "zsh"), _CODE),
    **dict.fromkeys(("node", "perl", "ruby", "php", "deno"), _CODE_OF_OTHERS),
}
"""Options that pass code on a program's command line."""
MODULES = frozenset({"pytest", "unittest", "coverage", "nose2", "tox", "nox"})
"""Runners that are started with `python -m`."""
_OPERATORS = frozenset(
    {";", "&", "&&", "||", "|", ";;", "|&", "(", ")", "<", ">", ">>", "<<", ">&"}
)
_ASSIGNMENT = re.compile(r"\w+\+?=")


def runner_command_fault(command: str) -> str:
    """Return why a command cannot prove anything; empty if it can."""
    if "`" in command or "$(" in command or "<(" in command:
        return "leave out commands within the command"
    if "\n" in command.strip() or "\0" in command:
        return "write it in one line"
    try:
        parts = split_runner_commands(command)
    except ValueError as problem:
        return str(problem)
    for words in parts:
        for word in words:
            if VARIABLES.match(word):
                return f"leave out {word.partition('=')[0]}=, which decides what is run"
            if word.partition("=")[0] in SELECTION_OPTIONS:
                return (
                    f"leave out {word.partition('=')[0]}: whole files or folders of tests are run"
                )
        if words and words[0] in FORBIDDEN:
            return f"leave out {words[0]}: the exit code has to be that of the tests"
        if any(word.startswith("#") for word in words):
            return "leave the comment out"
        if set(words[1:]) & _INLINE.get(
            words[0].rpartition("/")[2].rstrip("0123456789."), frozenset()
        ):
            return f"leave out {words[0]} with code of its own: the tests belong into files"
        if any("::" in word for word in words):
            return "name whole files or folders of tests, not single ones"
    if not any(words and words[0].rpartition("/")[2] not in INSPECTION_PROGRAMS for words in parts):
        return "it runs no test: it only looks at files or prints"
    return ""


def split_runner_commands(command: str) -> list[list[str]]:
    """Split a command line into the words of each program it starts, without assignments.

    Raises:
        ValueError: It uses more than `&&`, `|` and `2>&1`; the message says what to change.
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.commenters, lexer.whitespace_split = "", True
        words = list(lexer)
    except ValueError as problem:
        raise ValueError(f"the shell cannot read it ({str(problem).lower()})") from None
    parts: list[list[str]] = [[]]
    place = 0
    while place < len(words):
        word = words[place]
        if word == "2" and words[place + 1 : place + 3] == [">&", "1"]:
            place += 3
            continue
        if word in ("&&", "|"):
            parts.append([])
        elif word in _OPERATORS or (word and not set(word) - set(";&|()<>")):
            raise ValueError(
                f"leave out {word}: join commands by && alone, so that the exit code is that of "
                "the tests"
            )
        elif parts[-1] or not _ASSIGNMENT.match(word) or VARIABLES.match(word):
            parts[-1].append(word)
        place += 1
    if any(not words for words in parts):
        raise ValueError("a part of it starts no program")
    return parts


def runner_probe(command: str) -> str:
    """Return a command that shows whether the test runner is installed; empty if unknown."""
    for words in readable_runner_commands(command):
        if words[0] == "pytest":
            return "pytest --version"
        if words[1:3] == ["-m", "pytest"]:
            return f"{words[0]} -m pytest --version"
    return ""


def lacks_runner(code: int | None, output: str, command: str) -> bool:
    """Return whether the output shows that the test runner itself is missing."""
    if code in (126, 127):
        return True
    modules = [
        words[words.index("-m") + 1]
        for words in readable_runner_commands(command)
        if "-m" in words[:-1]
    ]
    # Any other module belongs to the product and may not be written yet.
    return any(name in MODULES and f"No module named {name}" in output for name in modules)


def readable_runner_commands(command: str) -> list[list[str]]:
    """Return the words of each program that a command starts; empty if it cannot be read."""
    try:
        return split_runner_commands(command)
    except ValueError:
        return []

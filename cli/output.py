"""Output of commands: results to standard output, everything else to standard error."""

import codecs
import json
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

from rich.console import Console

from engine.program_names import name_running_program
from protocol.errors import Refusal
from protocol.short_text import one_line

SHOWN = 200
"""Characters shown of a rejected argument."""
LONGEST = 2000
"""Characters shown of an error message."""

OK = 0
FAILED = 1
"""The job failed or was cancelled, or a check failed."""
MISTAKE = 2
"""A mistake of the user, or no server."""


class UserError(Refusal):
    """Something the user has to fix. One line: what is wrong and what to do."""


def result_console() -> Console:
    return Console(soft_wrap=True, highlight=False)


def err_console() -> Console:
    """Return the console for progress and notes, so that results can be piped."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def escape_unencodable_output() -> None:
    """Write characters that a stream cannot encode as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write_error_line(more: str = "") -> OSError | None:
    """Flush the results and `more`; return the error, None on success or a closed pipe."""
    try:
        print(more, end="", flush=True)
    except BrokenPipeError:
        return None
    except OSError as error:
        return error
    return None


def print_result(text: str) -> None:
    """Print a line of the result unformatted: no markup, no wrapping."""
    print(escape_controls(text))


def print_advice(text: str) -> None:
    """Print a line of the result that may name our own commands."""
    print_result(name_running_program(text))


def print_note(text: str) -> None:
    """A line that is not part of the result."""
    print(escape_controls(name_running_program(text)), file=sys.stderr)


def escape_controls(text: str) -> str:
    """Escape control characters: text by documents or models must not control the terminal."""
    return "".join(
        char if char in "\n\t" or char.isprintable() else f"\\x{ord(char):02x}" for char in text
    )


def print_json(value: object) -> None:
    """Print a result for programs."""
    print(json.dumps(value, ensure_ascii=not _output_takes_unicode(), indent=2, default=str))


def print_json_line(value: object) -> None:
    """Print one of several results for programs: a JSON object per line."""
    print(json.dumps(value, ensure_ascii=not _output_takes_unicode(), default=str), flush=True)


def _output_takes_unicode() -> bool:
    """Return whether standard output can encode any character; its own escapes are not JSON."""
    return codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name == "utf-8"


def render_text_table(
    rows: list[dict[str, Any]],
    names: tuple[str, ...],
    width: int | None = None,
    narrowed: Sequence[tuple[str, int]] = (),
) -> list[str]:
    """Render a table whose columns are as wide as their content.

    Args:
        rows: A value for each name.
        width: The most that a line may have; without it nothing is cut.
        narrowed: The columns to cut until the lines fit, in this order, with the least that stays;
            one of which nothing would stay is left out.
    """
    cells = [[" ".join(str(row[name] or "-").split()) for name in names] for row in rows]
    table = [[name.upper() for name in names], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, least in narrowed if width else ():
        place, over = names.index(name), sum(widths) + 2 * sum(map(bool, widths)) - 2 - (width or 0)
        if over > 0 and widths[place] > least:
            widths[place] = max(least, widths[place] - over) if least else 0
    return [
        "  ".join(
            (cell if len(cell) <= most else f"{cell[: most - 1]}…").ljust(most)
            for cell, most in zip(row, widths, strict=True)
            if most
        ).rstrip()
        for row in table
    ]


def print_error(text: str, *, json: bool = False) -> None:
    """Print a mistake: a line for people, or an object with the key `error` for programs."""
    # The message repeats what was typed, which may be a pasted page.
    shown = one_line(text, LONGEST + SHOWN)
    if json:
        print_json({"error": escape_controls(name_running_program(shown))})
    else:
        print_note(f"error: {shown}")

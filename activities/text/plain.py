"""Text that can be sent, stored and shown."""

import json
import re

TITLE_CHARACTERS = 80
NAME_CHARACTERS = 64
"""The longest name of a tool that endpoints take."""


def replace_surrogates(text: str) -> str:
    """The text with a question mark for each lone surrogate.

    JSON escapes, YAML escapes and file names that are not UTF-8 all give them, and no payload can
    hold one: a result with one in it would fail to be sent, attempt after attempt.
    """
    return text.encode("utf-8", "replace").decode()


def as_json(content: object) -> str:
    """The content of a JSON file that people may look into."""
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def tool_name(text: str) -> str:
    """The text as endpoints take it for the name of a tool, if it is not too long."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def cut_middle(text: str, most: int, mark: str) -> str:
    """The text with no more than `most` characters of it: the middle gives way to a line.

    Args:
        mark: That line; `{gone}` in it becomes the number of characters left out.
    """
    if len(text) <= most:
        return text
    half = most // 2
    mark_line = mark.replace("{gone}", f"{len(text) - 2 * half:,}")
    return f"{text[:half]}\n{mark_line}\n{text[-half:]}"


def split_lines(text: str) -> list[str]:
    """The lines of a file, as people and editors count them, without their ends.

    Not splitlines: a form feed or U+2028 stands within a line.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def title_line(text: str) -> str:
    """The first line with words, bounded."""
    lines = [line.strip("# ").strip() for line in text.splitlines()]
    first = next((line for line in lines if line), "")
    return first if len(first) <= TITLE_CHARACTERS else f"{first[: TITLE_CHARACTERS - 1]}…"

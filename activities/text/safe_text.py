"""Makes text safe to send, store and show."""

import json
import re

NAME_CHARACTERS = 64
"""Longest tool name that endpoints accept."""


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks.

    JSON escapes, YAML escapes and file names that are not UTF-8 contain them, but no payload can
    encode them: sending such a result would fail at every attempt.
    """
    return text.encode("utf-8", "replace").decode()


def as_readable_json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def safe_tool_name(text: str) -> str:
    """Replace characters that endpoints refuse in a tool's name; the length is not checked."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def cut_middle(text: str, most: int, mark: str) -> str:
    """Return at most `most` characters, with the line `mark` for the middle that is `{gone}`."""
    if len(text) <= most:
        return text
    half = most // 2
    mark_line = mark.replace("{gone}", f"{len(text) - 2 * half:,}")
    return f"{text[:half]}\n{mark_line}\n{text[-half:]}"


def split_lines(text: str) -> list[str]:
    """Split text into lines as editors count them: not at form feeds or U+2028."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]

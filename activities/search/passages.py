"""Splits a file's text into passages, the units that are ranked and shown."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from activities.text.safe_text import split_lines

MAX_CHARACTERS = 1200
"""Maximum size of a passage: about the 256 tokens that small embedding models read."""
MIN_CHARACTERS = 400
"""Size from which a passage ends at an empty line."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Whole lines of a file, or part of a very long line."""

    line: int
    """Number of the first line, counted from 1."""
    text: str

    @property
    def fingerprint(self) -> bytes:
        """Hash of the text, the key of its embedding."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest()[:16]


def split_passages(data: bytes) -> Iterator[Passage]:
    """Yield a file's passages in order, in linear time; none if it is not text."""
    try:
        lines = split_lines(data.decode())
    except UnicodeDecodeError:
        return
    pending: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        ends = size >= MIN_CHARACTERS and not line.strip()
        if pending and (ends or line.startswith("#") or size + len(line) > MAX_CHARACTERS):
            yield from _join_passage(first, pending)
            pending, size = [], 0
        if not pending:
            first = number
        if line.strip() or pending:
            pending.append(line)
            size += len(line) + 1
        if size > MAX_CHARACTERS:
            yield from _split_line_into_passages(number, line)
            pending, size = [], 0
    yield from _join_passage(first, pending)


def _join_passage(line: int, lines: list[str]) -> Iterator[Passage]:
    if text := "\n".join(lines).strip():
        yield Passage(line, text)


def _split_line_into_passages(number: int, line: str) -> Iterator[Passage]:
    """Yield a line that is too long for a passage in pieces."""
    for start in range(0, len(line), MAX_CHARACTERS):
        if piece := line[start : start + MAX_CHARACTERS].strip():
            yield Passage(number, piece)

"""A file's text cut into passages: what is ranked and shown."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from activities.text.plain import lines_of

MOST = 1200
"""Characters of a passage: about the 256 tokens that small embedding models read."""
ENOUGH = 400
"""Characters from which on a passage ends at an empty line."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Whole lines of a file, or a part of one that is very long."""

    line: int
    """The first line, counted from 1."""
    text: str

    @property
    def mark(self) -> bytes:
        """The same for the same text, wherever it stands: what its embedding is kept under."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest()[:16]


def passages(data: bytes) -> Iterator[Passage]:
    """The passages of a file in its order, in linear time; none for what is not text."""
    try:
        lines = lines_of(data.decode())
    except UnicodeDecodeError:
        return
    held: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        ends = size >= ENOUGH and not line.strip()
        if held and (ends or line.startswith("#") or size + len(line) > MOST):
            yield from _passage(first, held)
            held, size = [], 0
        if not held:
            first = number
        if line.strip() or held:
            held.append(line)
            size += len(line) + 1
        if size > MOST:
            yield from _parts(number, line)
            held, size = [], 0
    yield from _passage(first, held)


def _passage(line: int, held: list[str]) -> Iterator[Passage]:
    if text := "\n".join(held).strip():
        yield Passage(line, text)


def _parts(number: int, line: str) -> Iterator[Passage]:
    """A line that is too long for a passage, in pieces."""
    for at in range(0, len(line), MOST):
        if piece := line[at : at + MOST].strip():
            yield Passage(number, piece)

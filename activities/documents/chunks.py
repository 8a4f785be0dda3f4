"""Splits a document's pages into chunks of bounded size."""

from __future__ import annotations

import re
from collections import deque

from activities.documents.pages import Page
from activities.text import tokens

CHARACTERS_PER_TOKEN = 16
"""Upper bound of characters per token; longer tokens are rare."""


def split_document_chunks(pages: list[Page], size: int, shared: int) -> list[tuple[str, list[int]]]:
    """Return texts of at most `size` tokens, each with its page numbers."""
    pieces = [
        (piece, page.number)
        for page in pages
        for paragraph in re.split(r"\n\s*\n", page.text)
        for piece in _split_chunk_paragraph(paragraph, size)
    ]
    chunks: list[tuple[str, list[int]]] = []
    pending: deque[tuple[str, int, int]] = deque()
    total = 0
    for piece, number in pieces:
        count = tokens.count_tokens(piece) + 2
        if total + count > size:
            chunks.append(_join_chunk_pieces(pending))
            room = min(shared, size - count)
            while total > room:
                total -= pending.popleft()[2]
        pending.append((piece, number, count))
        total += count
    if pending:
        chunks.append(_join_chunk_pieces(pending))
    return chunks


def _split_chunk_paragraph(paragraph: str, size: int) -> list[str]:
    """Halve a paragraph until each piece fits into a chunk; between words where possible, since
    Chinese or a table of figures may have no spaces."""
    text = paragraph.strip()
    if not text:
        return []
    # Count tokens only near the size, or a long text would be counted at each halving.
    near = len(text) <= CHARACTERS_PER_TOKEN * size
    if len(text) == 1 or (near and tokens.count_tokens(text) + 2 <= size):
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 1, middle + 1)
    cut = cut if cut > middle // 2 else middle
    return _split_chunk_paragraph(text[:cut], size) + _split_chunk_paragraph(text[cut:], size)


def _join_chunk_pieces(pieces: deque[tuple[str, int, int]]) -> tuple[str, list[int]]:
    return "\n\n".join(piece for piece, _, _ in pieces) + "\n", sorted({n for _, n, _ in pieces})

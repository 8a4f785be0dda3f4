"""Document tools. Each input document has its text beside it, extracted when the job started."""

import re
from collections import deque
from typing import Annotated

from pydantic import Field

from activities.documents.pages import (
    Page,
    PageRanges,
    name_unread_pages,
    page_span_text,
    render_pages,
)
from activities.text import tokens
from activities.text.safe_text import as_readable_json
from activities.toolkit.path_ownership import DOCUMENT_NOTICE
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.workspace_documents import (
    canonical_document_path,
    document_result_folder,
    read_workspace_document,
    read_workspace_pages,
)

DocumentPath = Annotated[str, Field(max_length=1000, description="Path of the document.")]


@tool("documents", effect="reads", local=False, seconds=180)
def extract_document_text(
    context: ToolContext,
    path: DocumentPath,
    pages: Annotated[str | None, Field(description='Pages and ranges: "3" or "2-5,8".')] = None,
) -> str:
    """Show the text of a PDF, DOCX, HTML, Markdown or text document, page by page.

    The mark of a page names the number printed on it and the sections on it, where the document
    has them; HTML has a page for each heading. What looks broken or was guessed is said first.
    """
    reading = read_workspace_document(context.files, path)
    all_pages = reading.pages
    try:
        wanted = PageRanges.parse(pages) if pages is not None else None
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    shown = [page for page in all_pages if wanted is None or page.number in wanted]
    if not shown:
        raise ToolError(
            f"{path} has the pages {page_span_text(all_pages)}; there is none in {pages}."
        )
    what = "page" if len(shown) == 1 else "pages"
    doubts = f" {reading.quality}" if reading.quality else name_unread_pages(shown)
    return (
        f"{path}, {what} {page_span_text(shown)} of {all_pages[-1].number}.{doubts} "
        f"{DOCUMENT_NOTICE}\n{render_pages(shown)}"
    )


@tool("documents", effect="writes", local=False, seconds=180)
def chunk_document(
    context: ToolContext,
    path: DocumentPath,
    max_tokens: Annotated[int | None, Field(ge=50, le=8000)] = None,
    overlap: Annotated[int | None, Field(ge=0, le=4000)] = None,
) -> str:
    """Cut a document into chunks under chunks/, with a manifest.json that says what is where.

    A chunk ends at a paragraph where it can; neighbours share whole paragraphs of together at
    most `overlap` tokens. The manifest gives path, pages and tokens of each chunk. Chunks that the
    document had before are replaced.
    """
    size = max_tokens or context.config.settings.chunk_tokens
    shared = context.config.settings.chunk_overlap if overlap is None else overlap
    if shared >= size:
        raise ToolError(f"overlap ({shared}) must be smaller than max_tokens ({size}).")
    path = canonical_document_path(context.files, path)
    folder = f"chunks/{document_result_folder(path)}"
    if context.files.entry(folder):
        context.files = context.files.delete(folder)
    manifest = []
    pages = read_workspace_pages(context, path)
    for number, (text, numbers) in enumerate(split_document_chunks(pages, size, shared), 1):
        name = f"{folder}/chunk_{number:03d}.md"
        context.files = context.files.write(name, text.encode())
        manifest.append({"path": name, "pages": numbers, "tokens": tokens.count_tokens(text)})
    content = {"document": path, "max_tokens": size, "overlap": shared, "chunks": manifest}
    context.files = context.files.write(
        f"{folder}/manifest.json", as_readable_json(content).encode()
    )
    return f"Wrote {len(manifest)} chunks and {folder}/manifest.json.{name_unread_pages(pages)}"


CHARACTERS_PER_TOKEN = 16
"""Upper bound of characters per token; longer tokens are rare."""


def split_document_chunks(pages: list[Page], size: int, shared: int) -> list[tuple[str, list[int]]]:
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

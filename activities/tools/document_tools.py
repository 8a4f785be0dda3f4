"""Document tools. Each input document has its text beside it, extracted when the job started."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from activities.checkpoints import Files
from activities.checkpoints import parse_path as parts_of
from activities.documents import (
    DocumentError,
    Page,
    Quality,
    ReadingResult,
    name_unread_pages,
    parse_pages,
    read_document_bounded,
    render_pages,
)
from activities.documents.input_documents import (
    input_document_quality_name,
    input_document_text_name,
)
from activities.text import tokens
from activities.text.safe_text import as_readable_json
from activities.toolkit.path_ownership import DOCUMENT_NOTICE, owned_path_refusal
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.web import FOLDER as FETCHED

DocumentPath = Annotated[str, Field(description="Path of the document, such as documents/a.pdf.")]
NEAR = 16
"""Upper bound of characters per token; longer tokens are rare."""
_PAGES = re.compile(r"^(\d{1,6})(?:\s*-\s*(\d{1,6}))?$")


@tool("documents", effect="reads", local=False, seconds=180)
def extract_document_text(
    context: ToolContext,
    path: DocumentPath,
    pages: Annotated[str | None, Field(description='A page or a range: "3" or "2-5".')] = None,
) -> str:
    """Show the text of a PDF, DOCX, HTML, Markdown or text document, page by page.

    The mark of a page names the number printed on it and the sections on it, where the document
    has them; HTML has a page for each heading. What looks broken or was guessed is said first.
    """
    reading = read_workspace_document(context, path)
    all_pages = reading.pages
    first, last = _page_range(pages, all_pages)
    shown = [page for page in all_pages if first <= page.number <= last]
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
    path = canonical_document_path(context, path)
    folder = f"chunks/{document_result_folder(path)}"
    if context.files.entry(folder):
        context.files = context.files.delete(folder)
    manifest = []
    pages = document_pages(context, path)
    for number, (text, numbers) in enumerate(split_document_chunks(pages, size, shared), 1):
        context.heartbeat()
        name = f"{folder}/chunk_{number:03d}.md"
        context.files = context.files.write(name, text.encode())
        manifest.append({"path": name, "pages": numbers, "tokens": tokens.count_tokens(text)})
    content = {"document": path, "max_tokens": size, "overlap": shared, "chunks": manifest}
    context.files = context.files.write(
        f"{folder}/manifest.json", as_readable_json(content).encode()
    )
    return f"Wrote {len(manifest)} chunks and {folder}/manifest.json.{name_unread_pages(pages)}"


def document_result_folder(path: str) -> str:
    """Return the folder name for a document's results; unique across folders."""
    parts = parts_of(path)
    return "/".join(parts[1:] if parts[0] == "documents" else parts)


def document_pages(context: ToolContext, path: str) -> list[Page]:
    """Return the pages of a document in the workspace.

    Raises:
        ToolError: The document is missing, or its text cannot be read.
    """
    return read_workspace_document(context, path).pages


def read_workspace_document(context: ToolContext, path: str) -> ReadingResult:
    """Return the pages of a document in the workspace, and the quality of the reading.

    Raises:
        ToolError: The document is missing, or its text cannot be read.
    """
    return read_document_in_files(context.files, path, context.heartbeat)


def read_document_in_files(files: Files, path: str, heartbeat: Callable[[], None]) -> ReadingResult:
    """Like `read_workspace_document`, for any tree of files."""
    name = find_document_of_text(files, path)
    data = files.read(name)
    beside = input_document_text_name(name)
    try:
        # Only inputs have trusted text beside them; elsewhere the agent could forge what it cites.
        if _is_document_write_protected(name) and files.entry(beside):
            return ReadingResult(
                parse_pages(files.read(beside).decode()),
                quality=_stored_document_quality(files, name),
            )
        return read_document_bounded(PurePosixPath(path).name, data, heartbeat=heartbeat)
    except DocumentError as error:
        raise ToolError(f"{path}: {error}") from None


def input_document_paths(files: Files) -> list[str]:
    """Return the paths of the job's input documents, without those it fetched itself."""
    if files.entry("documents") is None:
        return []
    paths = [
        entry.path
        for entry in files.walk("documents")
        if entry.kind == "file" and not entry.path.startswith(f"{FETCHED}/")
    ]
    beside = {input_document_quality_name(path) for path in paths}
    return [
        path for path in paths if path not in beside and find_document_of_text(files, path) == path
    ]


def _stored_document_quality(files: Files, name: str) -> Quality:
    path = input_document_quality_name(name)
    return Quality() if files.entry(path) is None else Quality.from_json(files.read(path).decode())


def canonical_document_path(context: ToolContext, path: str) -> str:
    """Return the document's canonical path, also if `path` is the text beside it.

    That text has all pages in one file, so it would count as a document of one page.
    """
    return find_document_of_text(context.files, path)


def find_document_of_text(files: Files, path: str) -> str:
    """Like `canonical_document_path`, for any tree of files."""
    name = "/".join(parts_of(path))
    document = name.removesuffix(input_document_text_name(""))
    if document == name or not _is_document_write_protected(document) or files.entry(name) is None:
        return name
    meant = files.entry(document)
    return document if meant and meant.kind == "file" else name


def _is_document_write_protected(name: str) -> bool:
    return owned_path_refusal(name, "strategic") is not None


def _page_range(pages: str | None, available: list[Page]) -> tuple[int, int]:
    if pages is None:
        return (available[0].number, available[-1].number) if available else (1, 1)
    match = _PAGES.match(pages.strip())
    if not match:
        raise ToolError(f'pages must be like "3" or "2-5", found {pages!r}.')
    first = int(match.group(1))
    return first, int(match.group(2) or first)


def page_span_text(pages: list[Page]) -> str:
    if not pages:
        return "none"
    first, last = pages[0].number, pages[-1].number
    return f"{first}" if first == last else f"{first}-{last}"


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
    near = len(text) <= NEAR * size
    if len(text) == 1 or (near and tokens.count_tokens(text) + 2 <= size):
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 1, middle + 1)
    cut = cut if cut > middle // 2 else middle
    return _split_chunk_paragraph(text[:cut], size) + _split_chunk_paragraph(text[cut:], size)


def _join_chunk_pieces(pieces: deque[tuple[str, int, int]]) -> tuple[str, list[int]]:
    return "\n\n".join(piece for piece, _, _ in pieces) + "\n", sorted({n for _, n, _ in pieces})

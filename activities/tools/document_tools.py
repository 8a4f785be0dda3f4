"""Document tools. Each input document has its text beside it, extracted when the job started."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.documents import Page, name_unread_pages, render_pages
from activities.documents.chunks import split_document_chunks
from activities.documents.pages import page_span_text, parse_page_range
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
    pages: Annotated[str | None, Field(description='A page or a range: "3" or "2-5".')] = None,
) -> str:
    """Show the text of a PDF, DOCX, HTML, Markdown or text document, page by page.

    The mark of a page names the number printed on it and the sections on it, where the document
    has them; HTML has a page for each heading. What looks broken or was guessed is said first.
    """
    reading = read_workspace_document(context.files, path)
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


def _page_range(pages: str | None, available: list[Page]) -> tuple[int, int]:
    if pages is None:
        return (available[0].number, available[-1].number) if available else (1, 1)
    try:
        return parse_page_range(pages)
    except ValueError as problem:
        raise ToolError(str(problem)) from None

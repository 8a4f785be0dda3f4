"""Documents: their text by page, and quotes found in it."""

from activities.documents.bounded_reader import extract_bounded, read_document_bounded
from activities.documents.document_reader import read_document_pages
from activities.documents.pages import (
    DocumentError,
    Page,
    find_page,
    name_unread_pages,
    parse_pages,
    render_pages,
    section_on_page,
)
from activities.documents.quotes import (
    FoldedPage,
    contains_quote,
    find_quoted_passage,
    is_short_quote,
    nearest_quoted_passage,
    pages_with_quote,
)
from activities.documents.reading_result import Quality, ReadingResult

__all__ = [
    "DocumentError",
    "FoldedPage",
    "Page",
    "Quality",
    "ReadingResult",
    "contains_quote",
    "extract_bounded",
    "find_page",
    "find_quoted_passage",
    "is_short_quote",
    "name_unread_pages",
    "nearest_quoted_passage",
    "pages_with_quote",
    "parse_pages",
    "read_document_bounded",
    "read_document_pages",
    "render_pages",
    "section_on_page",
]

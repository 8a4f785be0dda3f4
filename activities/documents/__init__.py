"""Documents: their text by page, and quotes found in it."""

from activities.documents.bounded import extract_bounded, read_bounded
from activities.documents.pages import (
    DocumentError,
    Page,
    name_unread_pages,
    page_of,
    parse,
    render,
    section_at,
)
from activities.documents.quotes import (
    FoldedPage,
    contains_quote,
    is_short,
    nearest_passage,
    pages_with_quote,
    passage_of,
)
from activities.documents.reading_result import Quality, Reading
from activities.documents.text import extract

__all__ = [
    "DocumentError",
    "FoldedPage",
    "Page",
    "Quality",
    "Reading",
    "contains_quote",
    "extract",
    "extract_bounded",
    "is_short",
    "name_unread_pages",
    "nearest_passage",
    "page_of",
    "pages_with_quote",
    "parse",
    "passage_of",
    "read_bounded",
    "render",
    "section_at",
]

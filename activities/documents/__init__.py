"""Documents: their text by page, quotes found in it, and sentences that may be requirements."""

from activities.documents.bounded import extract_bounded, read_bounded
from activities.documents.candidates import Candidate, identify
from activities.documents.pages import (
    DocumentError,
    Page,
    page_of,
    parse,
    render,
    section_at,
    unread_told,
)
from activities.documents.quotes import contains_quote, is_short, pages_with_quote
from activities.documents.reading import Quality, Reading
from activities.documents.text import extract

__all__ = [
    "Candidate",
    "DocumentError",
    "Page",
    "Quality",
    "Reading",
    "contains_quote",
    "extract",
    "extract_bounded",
    "identify",
    "is_short",
    "page_of",
    "pages_with_quote",
    "parse",
    "read_bounded",
    "render",
    "section_at",
    "unread_told",
]

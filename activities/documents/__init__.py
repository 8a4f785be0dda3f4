"""Documents: their text by page, quotes found in it, and sentences that may be requirements."""

from activities.documents.bounded import extract_bounded
from activities.documents.candidates import Candidate, Force, force_of, identify
from activities.documents.pages import DocumentError, Page, page_of, parse, render, unread_told
from activities.documents.quotes import (
    FoldedPage,
    contains_quote,
    is_short,
    nearest_passage,
    pages_with_quote,
    passage_of,
)
from activities.documents.text import extract

__all__ = [
    "Candidate",
    "DocumentError",
    "FoldedPage",
    "Force",
    "Page",
    "contains_quote",
    "extract",
    "extract_bounded",
    "force_of",
    "identify",
    "is_short",
    "nearest_passage",
    "page_of",
    "pages_with_quote",
    "parse",
    "passage_of",
    "render",
    "unread_told",
]

"""A document's pages alone, as most tests of the readers look at them."""

from typing import Any

from activities.documents.bounded_reader import read_document_bounded
from activities.documents.document_reader import read_document
from activities.documents.pages import Page, find_page_section_starts, section_before


def read_document_pages(name: str, data: bytes) -> list[Page]:
    return read_document(name, data).pages


def extract_bounded(name: str, data: bytes, **limits: Any) -> list[Page]:
    return read_document_bounded(name, data, **limits).pages


def section_on_page(page: Page, offset: int) -> str:
    """Return the section at a character of the page; empty if unknown."""
    return section_before(find_page_section_starts(page), offset)

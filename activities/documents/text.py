"""The text of a document, page by page: PDF, DOCX, HTML, Markdown and plain text.

The parsers are libraries. What is decided here is which of them a file needs (by its content
first, since names lie), where pages end, and the one line said when there is no text to be had.
`bounded.py` runs all of this where it can be killed; a parser is loaded when a document wants it,
which in the worker itself none does.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from activities.documents.encoding import CONTROL, decode_text, is_utf8, utf16_encoding
from activities.documents.pages import DocumentError, Page, mark_text
from activities.documents.quality import assess_quality
from activities.documents.reading_result import ReadingResult
from activities.text.plain import replace_surrogates

DocumentKind = Literal["pdf", "docx", "html", "text"]

_HTML_START = re.compile(
    # Never taken back, so that many comments cost no more than their bytes.
    rb"(?:\xef\xbb\xbf)?(?:\s++|<\?xml[^>]*+>|<!--(?>.*?-->))*+(?:<!doctype\s+html|<html)\b",
    re.IGNORECASE | re.DOTALL,
)
_KNOWN_BY_NAME: dict[str, DocumentKind] = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}
# Formats that are recognised only to say what to do about them.
_UNSUPPORTED_FORMATS = {
    b"\xd0\xcf\x11\xe0": "an old Office file or one with a password: save it as unprotected .docx",
    b"{\\rtf": "an RTF file: save it as .docx or PDF",
    b"\x89PNG": "a picture: convert it to text (OCR) first",
    b"\xff\xd8\xff": "a picture: convert it to text (OCR) first",
    b"GIF8": "a picture: convert it to text (OCR) first",
    b"\x1f\x8b": "a compressed archive: unpack it first",
}
_MARKDOWN = {".md", ".markdown"}
_MARKDOWN_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)


def extract_pages(name: str, data: bytes) -> list[Page]:
    """The pages of `read_document`."""
    return read_document(name, data).pages


def read_document(name: str, data: bytes) -> ReadingResult:
    """The pages of the document `data`, in order, numbered from 1 as in the file.

    `name` is used in messages and, where the content leaves a doubt, for its extension. HTML has a
    part for each heading instead of pages; Markdown and text without form feeds have one page.
    Blank pages are kept, so that numbers stay true; so are those of a PDF that cannot be read,
    beside others that can (`unread_text`). Raises `DocumentError` for a type that is not known, a
    file that is broken or encrypted, and a document with no text at all.
    """
    if not data.strip():
        raise DocumentError(f"{name}: no text in it: the file is empty")
    kind = detect_kind(name, data)
    try:
        reading = _READERS[kind](name, data)
    except (DocumentError, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentError(
            f"{name}: its parts lie too deep in one another; save it as text"
        ) from error
    except Exception as error:  # a parser fed with foreign bytes may raise whatever it likes
        if _lacks_memory(error):
            raise MemoryError from error
        raise DocumentError(
            f"{name}: the file is broken ({_one_line(error)}); get an intact copy"
        ) from error
    pages = [replace(page, text=_clean_text(page.text)) for page in reading.pages]
    if not any(page.text.strip() for page in pages):
        raise DocumentError(
            f"{name}: no text in it (empty, or filled by scripts in a browser); "
            "save there what it shows as text"
            if kind == "html"
            else f"{name}: no text in it (empty, or a scan); "
            "run text recognition (OCR) over it first"
        )
    reading = replace(reading, pages=pages)
    may_mistake_letters = kind == "pdf" or bool(reading.guessed_encoding)
    return replace(reading, quality=assess_quality(reading, by_language=may_mistake_letters))


def needs_text_beside(name: str, data: bytes) -> bool:
    """Whether a document cannot be read as it is: all but text in UTF-8."""
    return detect_kind(name, data) != "text" or not is_utf8(data)


def detect_kind(name: str, data: bytes) -> DocumentKind:
    """Which reader the document needs, by a look at its first bytes and then at its extension."""
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return "docx"
    for magic, advice in _UNSUPPORTED_FORMATS.items():
        if data.startswith(magic):
            raise DocumentError(f"{name}: this is {advice}")
    if _HTML_START.match(data[:4096]):
        return "html"
    by_name = _KNOWN_BY_NAME.get(PurePath(name).suffix.lower(), "text")
    if by_name in ("pdf", "docx") and data.strip():
        raise DocumentError(
            f"{name}: the file is broken (not a {by_name.upper()} inside); get an intact copy"
        )
    if not utf16_encoding(data) and data[:8192].translate(None, CONTROL) != data[:8192]:
        raise DocumentError(
            f"{name}: unknown type (binary); PDF, DOCX, HTML, Markdown and text can be read"
        )
    return "html" if by_name == "html" else "text"


def _read_pdf(name: str, data: bytes) -> ReadingResult:
    from activities.documents import pdf  # noqa: PLC0415

    return pdf.read_pdf(name, data)


def _read_docx(name: str, data: bytes) -> ReadingResult:
    from activities.documents import word  # noqa: PLC0415

    return word.read_word(name, data)


def _read_html(name: str, data: bytes) -> ReadingResult:
    from activities.documents import html  # noqa: PLC0415

    return html.read_html(name, data)


def _read_text(name: str, data: bytes) -> ReadingResult:
    text, guess = decode_text(data)
    pages = []
    for number, part in enumerate(text.split("\f"), 1):
        titles = [mark_text(title) for title in _MARKDOWN_HEADING.findall(part)]
        sections = titles if PurePath(name).suffix.lower() in _MARKDOWN else []
        pages.append(Page(number, part, sections=sections))
    return ReadingResult(pages, guess)


_READERS: dict[DocumentKind, Callable[[str, bytes], ReadingResult]] = {
    "pdf": _read_pdf,
    "docx": _read_docx,
    "html": _read_html,
    "text": _read_text,
}


# Of typesetting, not of the text; left in, no search for "file" finds it.
_LIGATURES = str.maketrans(
    dict(
        zip(
            "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06",
            ["ff", "fi", "fl", "ffi", "ffl", "ft", "st"],
            strict=True,
        )
    )
)


def _clean_text(text: str) -> str:
    # Broken character maps give lone surrogates, which no file can hold.
    text = (
        replace_surrogates(text)
        .translate(_LIGATURES)
        .replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\f", "\n")
        .replace("\0", "")
    )
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _lacks_memory(error: Exception) -> bool:
    """Whether it is lxml's error for memory that it did not get."""
    from lxml import etree  # noqa: PLC0415

    return isinstance(error, etree.XMLSyntaxError) and error.code == etree.ErrorTypes.ERR_NO_MEMORY


def _one_line(error: object) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 160 else words[:157] + "..."

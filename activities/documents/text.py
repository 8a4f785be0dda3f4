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

from activities.documents.encoding import CONTROL, decode_text, is_utf8, wide
from activities.documents.pages import DocumentError, Page, in_mark
from activities.documents.quality import examine
from activities.documents.reading_result import Reading
from activities.text.plain import plain

Kind = Literal["pdf", "docx", "html", "text"]

_HTML_START = re.compile(
    # Never taken back, so that many comments cost no more than their bytes.
    rb"(?:\xef\xbb\xbf)?(?:\s++|<\?xml[^>]*+>|<!--(?>.*?-->))*+(?:<!doctype\s+html|<html)\b",
    re.IGNORECASE | re.DOTALL,
)
_KNOWN_BY_NAME: dict[str, Kind] = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}
# Formats that are recognised only to say what to do about them.
_REFUSED = {
    b"\xd0\xcf\x11\xe0": "an old Office file or one with a password: save it as unprotected .docx",
    b"{\\rtf": "an RTF file: save it as .docx or PDF",
    b"\x89PNG": "a picture: convert it to text (OCR) first",
    b"\xff\xd8\xff": "a picture: convert it to text (OCR) first",
    b"GIF8": "a picture: convert it to text (OCR) first",
    b"\x1f\x8b": "a compressed archive: unpack it first",
}
_MARKDOWN = {".md", ".markdown"}
_MARKDOWN_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)


def extract(name: str, data: bytes) -> list[Page]:
    """The pages of `read_document`."""
    return read_document(name, data).pages


def read_document(name: str, data: bytes) -> Reading:
    """The pages of the document `data`, in order, numbered from 1 as in the file.

    `name` is used in messages and, where the content leaves a doubt, for its extension. HTML has a
    part for each heading instead of pages; Markdown and text without form feeds have one page.
    Blank pages are kept, so that numbers stay true; so are those of a PDF that cannot be read,
    beside others that can (`not_read`). Raises `DocumentError` for a type that is not known, a
    file that is broken or encrypted, and a document with no text at all.
    """
    if not data.strip():
        raise DocumentError(f"{name}: no text in it: the file is empty")
    kind = sniff(name, data)
    try:
        found = _READERS[kind](name, data)
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
    pages = [replace(page, text=_clean(page.text)) for page in found.pages]
    if not any(page.text.strip() for page in pages):
        raise DocumentError(
            f"{name}: no text in it (empty, or filled by scripts in a browser); "
            "save there what it shows as text"
            if kind == "html"
            else f"{name}: no text in it (empty, or a scan); "
            "run text recognition (OCR) over it first"
        )
    found = replace(found, pages=pages)
    may_mistake_letters = kind == "pdf" or bool(found.guessed)
    return replace(found, quality=examine(found, by_language=may_mistake_letters))


def needs_text_beside(name: str, data: bytes) -> bool:
    """Whether a document cannot be read as it is: all but text in UTF-8."""
    return sniff(name, data) != "text" or not is_utf8(data)


def sniff(name: str, data: bytes) -> Kind:
    """Which reader the document needs, by a look at its first bytes and then at its extension."""
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return "docx"
    for magic, advice in _REFUSED.items():
        if data.startswith(magic):
            raise DocumentError(f"{name}: this is {advice}")
    if _HTML_START.match(data[:4096]):
        return "html"
    by_name = _KNOWN_BY_NAME.get(PurePath(name).suffix.lower(), "text")
    if by_name in ("pdf", "docx") and data.strip():
        raise DocumentError(
            f"{name}: the file is broken (not a {by_name.upper()} inside); get an intact copy"
        )
    if not wide(data) and data[:8192].translate(None, CONTROL) != data[:8192]:
        raise DocumentError(
            f"{name}: unknown type (binary); PDF, DOCX, HTML, Markdown and text can be read"
        )
    return "html" if by_name == "html" else "text"


def _pdf(name: str, data: bytes) -> Reading:
    from activities.documents import pdf  # noqa: PLC0415

    return pdf.read(name, data)


def _docx(name: str, data: bytes) -> Reading:
    from activities.documents import word  # noqa: PLC0415

    return word.read(name, data)


def _html(name: str, data: bytes) -> Reading:
    from activities.documents import html  # noqa: PLC0415

    return html.read(name, data)


def _text(name: str, data: bytes) -> Reading:
    text, guess = decode_text(data)
    pages = []
    for number, part in enumerate(text.split("\f"), 1):
        titles = [in_mark(title) for title in _MARKDOWN_HEADING.findall(part)]
        sections = titles if PurePath(name).suffix.lower() in _MARKDOWN else []
        pages.append(Page(number, part, sections=sections))
    return Reading(pages, guess)


_READERS: dict[Kind, Callable[[str, bytes], Reading]] = {
    "pdf": _pdf,
    "docx": _docx,
    "html": _html,
    "text": _text,
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


def _clean(text: str) -> str:
    # Broken character maps give lone surrogates, which no file can hold.
    text = (
        plain(text)
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

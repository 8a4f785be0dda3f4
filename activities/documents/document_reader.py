"""Extract a document's text page by page: PDF, DOCX, HTML, Markdown and plain text.

Libraries do the parsing. This module decides which one a file needs (by content first, since names
can be wrong), where pages end, and what to report if there is no text. `bounded_reader.py` runs it
in a child process. Parsers are imported on first use, which in the worker itself is never.
"""

import re
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from activities.documents.encoding import CONTROL, decode_text, is_utf8, utf16_encoding
from activities.documents.pages import (
    PICTURE_ADVICE,
    DocumentError,
    Page,
    PicturesAlone,
    ReadingResult,
    document_error_line,
    page_mark_text,
)
from activities.documents.quality import assess_quality
from activities.text.safe_text import replace_surrogates

DocumentKind = Literal["pdf", "docx", "html", "text"]
MAX_CHARACTERS = 100_000_000
"""Limit for all pages together; the worker holds them in memory."""

_HTML_START = re.compile(
    # Never backtracks, so that many comments cost no more than their bytes.
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
    b"\x1f\x8b": "a compressed archive: unpack it first",
}
_PICTURE_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")
_MARKDOWN = {".md", ".markdown"}
_MARKDOWN_CODE = re.compile(r"(^```.*?^```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_MARKDOWN_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_MARKDOWN_STRUCK = re.compile(
    r"~~(?=\S)[^~\n]+~~|<(del|s|strike)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_MAIL = re.compile(
    rb"(?:[A-Za-z][\w-]{1,40}:[^\n]*\r?\n(?:[ \t][^\n]*\r?\n)*){2,60}?(?:mime-version|message-id):",
    re.IGNORECASE,
)
_MARKDOWN_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)
_PROGRAM_ERRORS = (NameError, ImportError, AttributeError, TypeError, AssertionError)
"""What a fault of a program raises, and a parser now and then on damaged bytes."""


def read_document(name: str, data: bytes) -> ReadingResult:
    """Return the pages of the document `data`, in order, numbered from 1.

    `name` is used in messages and, if the content is ambiguous, for its extension. HTML has a part
    for each heading instead of pages; Markdown and text without form feeds have one page. Blank
    pages are included, so that numbers stay true, and so are unreadable pages of a PDF
    (`unread_page_placeholder`). Raises `DocumentError` for an unknown type, a broken or encrypted
    file, a document without any text or with too much.
    """
    if not data.strip():
        raise DocumentError(f"{name}: no text in it: the file is empty")
    kind = detect_document_kind(name, data)
    try:
        reading = _run_reader(kind, name, data)
    except (DocumentError, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentError(
            f"{name}: its parts lie too deep in one another; save it as text"
        ) from error
    except Exception as error:  # A parser may raise anything on foreign bytes.
        if _is_reader_out_of_memory(error):
            raise MemoryError from error
        words = document_error_line(error)
        raise DocumentError(
            f"{name}: it cannot be read ({type(error).__name__}: {words}); it may be broken, or "
            "its reader has a fault: get another copy, or save it as text"
            if isinstance(error, _PROGRAM_ERRORS)
            else f"{name}: the file is broken ({words}); get an intact copy"
        ) from error
    pages = [replace(page, text=_clean_document_text(page.text)) for page in reading.pages]
    if not any(page.text.strip() for page in pages):
        if kind == "pdf":
            raise PicturesAlone(
                f"{name}: no text in it (empty, or a scan); {PICTURE_ADVICE}", len(pages)
            )
        raise DocumentError(
            f"{name}: no text in it (empty, or filled by scripts in a browser); "
            "save there what it shows as text"
            if kind == "html"
            else f"{name}: no text in it (empty, or a scan); "
            "run text recognition (OCR) over it first"
        )
    # Before the judgement, which takes a second for four million characters.
    if (characters := sum(len(page.text) for page in pages)) > MAX_CHARACTERS:
        raise DocumentError(
            f"{name}: it has {characters:,} characters of text, and at most "
            f"{MAX_CHARACTERS:,} are read; split the file"
        )
    reading = replace(reading, pages=pages)
    may_mistake_letters = kind == "pdf" or bool(reading.guessed_encoding)
    return replace(reading, quality=assess_quality(reading, by_language=may_mistake_letters))


def needs_document_reader(name: str, data: bytes) -> bool:
    """Whether a document is unreadable as it is: anything but UTF-8 text."""
    try:
        return detect_document_kind(name, data) != "text" or not is_utf8(data)
    except PicturesAlone:
        return True


def detect_document_kind(name: str, data: bytes) -> DocumentKind:
    """Return the reader for a document, by its first bytes and then by its extension.

    Raises:
        DocumentError: No reader can read it; PicturesAlone for a picture.
    """
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return "docx"
    if data.startswith(_PICTURE_STARTS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        raise PicturesAlone(f"{name}: this is a picture: {PICTURE_ADVICE}")
    for magic, advice in _UNSUPPORTED_FORMATS.items():
        if data.startswith(magic):
            raise DocumentError(f"{name}: this is {advice}")
    if _MAIL.match(data[:8192]):
        raise DocumentError(
            f"{name}: this is an e-mail or a web page saved as one (MHTML): save what it shows as "
            "HTML or PDF, and its attachments apart"
        )
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


def _run_reader(kind: DocumentKind, name: str, data: bytes) -> ReadingResult:
    match kind:
        case "pdf":
            from activities.documents.pdf import read_pdf  # noqa: PLC0415

            return read_pdf(name, data)
        case "docx":
            from activities.documents.word import read_word  # noqa: PLC0415

            return read_word(name, data)
        case "html":
            from activities.documents.html import read_html  # noqa: PLC0415

            return read_html(name, data)
        case "text":
            return _read_text_document(name, data)


def _read_text_document(name: str, data: bytes) -> ReadingResult:
    text, guess = decode_text(data)
    omitted: dict[str, int] = {}
    if PurePath(name).suffix.lower() in _MARKDOWN:
        text, omitted = _drop_unshown_markdown(text)
    pages = []
    for number, part in enumerate(text.split("\f"), 1):
        titles = [page_mark_text(title) for title in _MARKDOWN_HEADING.findall(part)]
        sections = titles if PurePath(name).suffix.lower() in _MARKDOWN else []
        pages.append(Page(number, part, sections=sections))
    return ReadingResult(pages, guess, omitted_passages=omitted)


def _drop_unshown_markdown(text: str) -> tuple[str, dict[str, int]]:
    """Return the text without comments and struck passages, and their numbers; code stays."""
    omitted: dict[str, int] = {}
    parts = []
    for part in _MARKDOWN_CODE.split(text):
        shown = part
        if not _MARKDOWN_CODE.fullmatch(part):
            for why, pattern in (("hidden", _MARKDOWN_COMMENT), ("struck", _MARKDOWN_STRUCK)):
                shown, count = pattern.subn("", shown)
                if count:
                    omitted[why] = omitted.get(why, 0) + count
        parts.append(shown)
    return "".join(parts), omitted


# Soft hyphens and the like are typesetting; with them, no search for "file" would match.
_LIGATURES = str.maketrans(
    dict(
        zip(
            "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06",
            ["ff", "fi", "fl", "ffi", "ffl", "ft", "st"],
            strict=True,
        )
    )
)


def _clean_document_text(text: str) -> str:
    # Broken character maps produce lone surrogates, which no file can hold.
    text = (
        replace_surrogates(text)
        .translate(_LIGATURES)
        .replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\f", "\n")
        .replace("\0", "")
    )
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _is_reader_out_of_memory(error: Exception) -> bool:
    """Whether this is lxml's error for failed memory allocation."""
    from lxml import etree  # noqa: PLC0415

    return isinstance(error, etree.XMLSyntaxError) and error.code == etree.ErrorTypes.ERR_NO_MEMORY

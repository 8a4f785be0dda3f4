"""The text of a document, page by page: PDF, DOCX, HTML, Markdown and plain text.

The parsers are libraries. What is decided here is which of them a file needs (by its content
first, since names lie), where pages end, and the one line said when there is no text to be had.
`bounded.py` runs all of this where it can be killed; a parser is loaded when a document wants it,
which in the worker itself none does.
"""

import codecs
import logging
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import PurePath
from typing import Literal

from activities.documents.pages import DocumentError, Page, not_read
from activities.plain import plain

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
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
WINDOWS = "cp1252"
"""What a text of one byte a letter is in that says nothing else."""


def extract(name: str, data: bytes) -> list[Page]:
    """The pages of the document `data`, in order, numbered from 1 as in the file.

    `name` is used in messages and, where the content leaves a doubt, for its extension. A format
    without pages (HTML; Markdown and text without form feeds) gives one page. Blank pages are
    kept, so that numbers stay true; so are those of a PDF that cannot be read, beside others that
    can (`not_read`). Raises `DocumentError` for a type that is not known, a file that is broken or
    encrypted, and a document with no text at all.
    """
    kind = sniff(name, data)
    try:
        texts = _READERS[kind](name, data)
        links = _links(name, data) if kind == "html" and data.strip() else []
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # a parser fed with foreign bytes may raise whatever it likes
        raise DocumentError(
            f"{name}: the file is broken ({_one_line(error)}); get an intact copy"
        ) from error
    pages = [Page(number, _clean(text), links) for number, text in enumerate(texts, start=1)]
    if not any(page.text.strip() for page in pages):
        raise DocumentError(
            f"{name}: no text in it (empty, or filled by scripts in a browser); "
            "save there what it shows as text"
            if kind == "html"
            else f"{name}: no text in it (empty, or a scan); "
            "run text recognition (OCR) over it first"
        )
    return pages


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
    if not wide(data) and data[:8192].translate(None, _CONTROL) != data[:8192]:
        raise DocumentError(
            f"{name}: unknown type (binary); PDF, DOCX, HTML, Markdown and text can be read"
        )
    return "html" if by_name == "html" else "text"


def _pdf(name: str, data: bytes) -> list[str]:
    import pypdf  # noqa: PLC0415
    from pypdf.errors import DependencyError  # noqa: PLC0415

    locked = DocumentError(f"{name}: the PDF is encrypted; get a copy without a password")
    try:
        reader = pypdf.PdfReader(BytesIO(data))
        # Most "protected" PDFs forbid printing only and open with the empty password.
        if reader.is_encrypted and not reader.decrypt(""):
            raise locked
    except (DependencyError, NotImplementedError) as error:
        raise locked from error
    told = _Told()
    log = logging.getLogger("pypdf")
    log.addHandler(told)
    try:
        texts, broken, raised = [], {}, None
        for number in range(len(reader.pages)):
            told.first = ""
            try:
                text = reader.pages[number].extract_text()
                if told.first and not text.strip():
                    broken[number] = told.first
            except MemoryError:
                raise
            except Exception as error:  # as in `extract`; the pages beside it may be whole
                text, broken[number], raised = "", _one_line(error), raised or error
            texts.append(text)
    finally:
        log.removeHandler(told)
    if not any(text.strip() for text in texts):
        if raised:
            raise raised
        return texts
    for number, why in broken.items():
        texts[number] = not_read(why)
    return texts


class _Told(logging.Handler):
    """What pypdf logs first: a page whose text it cannot unpack it gives as an empty one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or _one_line(record.getMessage())


def _docx(name: str, data: bytes) -> list[str]:
    from activities.documents import word  # noqa: PLC0415

    return word.pages(name, data)


def _html(name: str, data: bytes) -> list[str]:
    from activities.documents import html  # noqa: PLC0415

    return html.pages(name, data)


def _links(name: str, data: bytes) -> list[tuple[str, str]]:
    from activities.documents import html  # noqa: PLC0415

    return html.links(name, data)


def _text(name: str, data: bytes) -> list[str]:
    return guessed(data).split("\f")


def guessed(data: bytes) -> str:
    """Text that says nothing of its encoding."""
    if encoding := wide(data):
        return data.decode(encoding, errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # A file that was cut within a letter or has a bad byte is UTF-8 all the same; in one of
        # another encoding hardly a letter comes out.
        text = data.decode("utf-8-sig", errors="replace")
        broken = text.count("\ufffd")
        whole = sum(not letter.isascii() for letter in text) - broken
        return text if whole > broken else decoded(data, WINDOWS)


def wide(data: bytes) -> str:
    """The encoding of text in two bytes a letter; empty for any other. Without the mark at its
    beginning it is known by the zeros, of which the simple letters have one each, on one side."""
    if data.startswith(_UTF16):
        return "utf-16"
    head = data[:8192]
    zeros = [head[side::2].count(0) for side in (0, 1)]
    if 10 * max(zeros) < len(head) // 2 or 10 * min(zeros) > max(zeros) or len(head) % 2:
        return ""
    encoding = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    # Numbers in two bytes have such zeros too, and are no letters.
    text = head.decode(encoding, errors="replace").encode("utf-8", errors="replace")
    return "" if text.translate(None, _CONTROL) != text else encoding


def is_utf8(data: bytes) -> bool:
    """Whether it is text in UTF-8, and not in what may pass for it: Japanese in ISO-2022-JP is
    ASCII with escapes, and English in UTF-16 is ASCII with zeros."""
    if data.isascii():
        return b"\x1b" not in data and b"\0" not in data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decoded(data: bytes, encoding: str) -> str:
    """As browsers read it: what is said to be Latin-1 or ASCII is Windows' extension of it, in
    which most such pages are written, and so is what names no encoding there is."""
    try:
        known = codecs.lookup(encoding).name
        if known not in ("iso8859-1", "ascii"):
            # UTF-7 and escapes can say what no file takes.
            return plain(data.decode({"gb2312": "gb18030"}.get(known, known), errors="replace"))
    except (LookupError, UnicodeError):
        pass
    return data.decode(WINDOWS, errors="replace")


_READERS: dict[Kind, Callable[[str, bytes], list[str]]] = {
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


def _one_line(error: object) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 160 else words[:157] + "..."

"""Extract the text of a PDF by PDFium, the best of the engines compared in docs/documents.md.

PDFium returns the characters of a page in reading order, with spaces and line ends. This module
adds spaces that only a gap shows, paragraphs by line distance, words joined at line ends, values of
form fields, notes, printed page labels, and the sections of the outline. Text that is struck out,
by a line or an annotation, is left out and counted.
"""

import ctypes
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from activities.documents import pdf_omissions
from activities.documents.pages import (
    PICTURE_ADVICE,
    DocumentError,
    Page,
    PicturesAlone,
    ReadingResult,
    document_error_line,
    page_mark_text,
    unread_page_placeholder,
)
from activities.documents.pdf_lines import (
    Box,
    Line,
    count_pdf_line_words,
    join_divided_words,
    join_raised_number_lines,
    separate_pdf_paragraphs,
    spaced_pdf_line,
)
from activities.documents.pdf_rules import find_rules
from activities.documents.pdf_tables import join_table_rows

MAX_PAGES = 20_000
MAX_OUTLINE_ENTRIES = 20_000
"""Most entries read of the outline."""
MAX_ANNOTATIONS = 5_000
"""Most annotations read of a page."""
PICTURE_SHARE = 0.1
"""Share of a page's area that pictures cover on a page that counts as a scan.

This is for pages without text. A receipt or a small form on a large sheet is a scan too; a logo or
a line is smaller.
"""
STAMP_WORDS = 40
"""Most words, such as a court's header, that a stamp puts on a scanned page."""
STAMPED_PICTURE_SHARE = 0.5
"""Share of a page's area that pictures cover on a scanned page with a stamp."""
PAPER_SHARE = 0.6
"""Share of light pixels on scanned paper. A photograph under a heading has fewer."""
_INK = 160
"""Lightness of a pixel below which it counts as ink, out of 255."""
ROW_STROKES = 8
"""Least strokes of ink that a row of pixels through a line of text crosses."""
TEXT_ROWS_SHARE = 0.1
"""Share of such rows on a page of text. The background of a slide has fewer."""
MAX_BLANK_PAGES_CHECKED = 100
"""Most empty pages that are checked again."""

_WIDGET, _STRIKE_OUT = pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_STRIKEOUT
_DRAWN = {_WIDGET, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_STAMP}
"""Annotations that are themselves text on the page."""
_WITHOUT_NOTE = {*_DRAWN, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK}
_HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_NUMBER = (
    r"(?:(?:[A-Z]|\d{1,3})(?:\.\d{1,3}){0,6}\.?|§+\s?\d+\w?|[IVXLC]{1,7}\."
    r"|(?:Chapter|Appendix|Part|Kapitel|Anhang|Teil)\s+\w{1,4}[.:]?)"
)


@dataclass(slots=True)
class _PageContent:
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unread: str = ""
    blank: bool = False
    struck: int = 0
    hidden: int = 0


def read_pdf(name: str, data: bytes) -> ReadingResult:
    """Return the pages of a PDF.

    Raises:
        DocumentError: it is encrypted, broken, or has too many pages.
        PicturesAlone: it is a scan.
    """
    document = _open_pdf(name, data)
    count = len(document)
    if count > MAX_PAGES:
        raise DocumentError(
            f"{name}: it has {count:,} pages, and at most {MAX_PAGES:,} are read; split the file"
        )
    if pdfium.FPDF_GetFormType(document) == pdfium.FORMTYPE_XFA_FULL:
        raise DocumentError(
            f"{name}: this is a form whose text is not in its pages (XFA); open it in a program "
            "that shows it and print it to a PDF"
        )
    contents = [_read_pdf_page(document, number) for number in range(count)]
    _check_blank_pdf_pages(data, contents)
    if not any(page.lines or page.notes for page in contents):
        pictures = sum(bool(page.unread) for page in contents)
        if pictures and not (why := _first_pdf_page_failure(contents)):
            raise PicturesAlone(
                f"{name}: no text in it: a scan, {pictures} of {count} pages are pictures; "
                f"{PICTURE_ADVICE}",
                count,
            )
        if pictures:
            raise DocumentError(f"{name}: the file is broken ({why}); get an intact copy")
    columns: Sequence[float] = []
    for page in contents:
        page.lines, columns = join_table_rows(page.lines, columns)
    words = count_pdf_line_words(line for page in contents for line in page.lines)
    sections = _pdf_outline_sections(document)
    pages: list[Page] = []
    current = ""
    for number, page in enumerate(contents, 1):
        text = page.unread or _pdf_page_text(page, words)
        new_sections = [
            page_mark_text(title)
            for title in _number_pdf_outline_titles(sections.get(number, []), text)
        ]
        if new_sections and _pdf_page_begins_with_title(text, new_sections[0]):
            touched = new_sections
        else:
            touched = [current, *new_sections] if current else new_sections
        current = new_sections[-1] if new_sections else current
        label = _pdf_page_label(document, number)
        pages.append(Page(number, text, label=label, sections=touched))
    omitted = {
        "struck": sum(page.struck for page in contents),
        "hidden": sum(page.hidden for page in contents),
    }
    return ReadingResult(
        pages, omitted_passages={why: count for why, count in omitted.items() if count}
    )


_NO_PAGES = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}/Kids\s*\[\s*\]|/Kids\s*\[\s*\][^>]{0,200}/Type\s*/Pages\b"
)


def _open_pdf(name: str, data: bytes) -> Any:
    try:
        # Most "protected" PDFs only forbid printing, and open with the empty password.
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise DocumentError(
                f"{name}: the PDF is encrypted; get a copy without a password"
            ) from error
        # PDFium reports none then, so that the code may be of a file before.
        if error.err_code == pdfium.FPDF_ERR_SUCCESS or _NO_PAGES.search(data):
            raise DocumentError(f"{name}: the PDF has no page; get an intact copy") from error
        raise
    # PDFium warns about a missing feature where a form has scripts.
    logging.getLogger("pypdfium2").setLevel(logging.ERROR)
    # This draws values that a file leaves to the viewer to draw.
    document.init_forms()
    return document


def _read_pdf_page(document: Any, number: int) -> _PageContent:
    try:
        page = document[number]
    except pypdfium2.PdfiumError:
        return _PageContent(unread=unread_page_placeholder("the file is broken here"))
    try:
        marks = _read_pdf_annotations(page)
        content = _PageContent(notes=marks.notes)
        if marks.is_drawn:
            pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY)
            page.close()
            page = document[number]
        content.lines = join_raised_number_lines(list(_read_pdf_lines(page, content, marks.struck)))
        _add_pdf_form_values(marks.values, content)
        if not content.notes:
            _detect_scanned_page(page, content)
        return content
    finally:
        page.close()


@dataclass(slots=True)
class _PageAnnotations:
    notes: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    """Values of text fields."""
    struck: list[Box] = field(default_factory=list)
    is_drawn: bool = False
    """Whether any of it is itself text on the page."""


def _read_pdf_annotations(page: Any) -> _PageAnnotations:
    marks = _PageAnnotations()
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        mark = pdfium.FPDFPage_GetAnnot(page, number)
        if not mark:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(mark)
            if pdfium.FPDFAnnot_GetFlags(mark) & _HIDDEN:
                continue
            marks.is_drawn = marks.is_drawn or kind in _DRAWN
            if kind == _WIDGET and _pdf_annotation_string(mark, "FT") != "Btn":
                marks.values.append(_pdf_annotation_string(mark, "V"))
            if kind == _STRIKE_OUT:
                marks.struck += pdf_omissions.strike_out_boxes(mark)
            if kind not in _WITHOUT_NOTE and (
                note := _pdf_annotation_string(mark, "Contents").strip()
            ):
                marks.notes.append(note)
        finally:
            pdfium.FPDFPage_CloseAnnot(mark)
    return marks


def _pdf_annotation_string(mark: Any, key: str) -> str:
    size = pdfium.FPDFAnnot_GetStringValue(mark, key.encode(), None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    pointer = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
    pdfium.FPDFAnnot_GetStringValue(mark, key.encode(), pointer, size)
    text = buffer.raw[: size - 2].decode("utf-16-le", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _add_pdf_form_values(values: list[str], content: _PageContent) -> None:
    """Add values that have no appearance, as in files that a program filled in."""
    page_text = " ".join(" ".join(line.text for line in content.lines).split())
    for value in values:
        words = " ".join(value.split())
        # Form fields without a type of their own report being off, too.
        if words and words != "Off" and words not in page_text:
            content.lines += [Line(""), *(Line(line) for line in value.split("\n"))]


def _read_pdf_lines(page: Any, content: _PageContent, struck: list[Box]) -> Iterator[Line]:
    text_page = page.get_textpage()
    try:
        text, boxes = _read_pdf_characters(text_page)
        if not text.strip():
            return
        unseen = pdf_omissions.find_unseen_letters(page, text_page, text, boxes)
        deleted = pdf_omissions.struck_letters(text, boxes, struck) if struck else set()
        rules = find_rules(page)
        deleted |= pdf_omissions.letters_crossed_by_lines(text_page, text, boxes, rules.level)
    finally:
        text_page.close()
    content.struck = pdf_omissions.join_struck_passages(text, deleted)
    content.hidden = pdf_omissions.join_struck_passages(text, unseen)
    deleted |= unseen
    # PDFium puts a hyphen mark at a line end, and no line end after it.
    for line in re.finditer(r"[^\r\n\ufffe\x02]*(?:[\ufffe\x02]|\r?\n|\r)|[^\r\n]+$", text):
        places = [place for place in range(*line.span()) if text[place] not in "\r\n"]
        shown = [place for place in places if place not in deleted]
        yield spaced_pdf_line(text, boxes, shown, rules.upright)


def _read_pdf_characters(text_page: Any) -> tuple[str, list[Box]]:
    count = text_page.count_chars()
    text = text_page.get_text_range() if count else ""
    if len(text) != count:  # The text has letters beyond 16 bits, or characters without meaning.
        codes = (pdfium.FPDFText_GetUnicode(text_page, place) for place in range(count))
        text = "".join(chr(code) if code < 0x110000 else "\ufffd" for code in codes)
    box_of, rectangle, handle = pdfium.FPDFText_GetLooseCharBox, pdfium.FS_RECTF(), text_page.raw
    reference = ctypes.byref(rectangle)
    boxes = []
    for place in range(count):
        box_of(handle, place, reference)
        boxes.append(Box(rectangle.left, rectangle.right, rectangle.bottom, rectangle.top))
    return text, boxes


def _detect_scanned_page(page: Any, content: _PageContent) -> None:
    """Mark a page as unread if it is a picture with no words, or those of a stamp."""
    words = " ".join(line.text for line in content.lines).split()
    if len(words) > STAMP_WORDS:
        return
    width, height = page.get_size()
    covered = 0.0
    content.blank = not words
    texts = []
    for thing in page.get_objects(max_depth=3):
        content.blank = False
        if thing.type == pdfium.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = thing.get_bounds()
            covered += max(0.0, right - left) * max(0.0, top - bottom)
        elif thing.type == pdfium.FPDF_PAGEOBJ_TEXT:
            texts.append(thing)
    if words:
        if covered > STAMPED_PICTURE_SHARE * width * height and _shows_other_text(page, texts):
            stamp = document_error_line(" ".join(words))
            why = f"a scan without its text, stamped {stamp}; it needs text recognition (OCR)"
            content.unread, content.lines = unread_page_placeholder(why), []
    elif covered > PICTURE_SHARE * width * height:
        why = "a picture without text, as of a scan; it needs text recognition (OCR)"
        content.unread = unread_page_placeholder(why)


def _shows_other_text(page: Any, texts: list[Any]) -> bool:
    """Return whether the page is paper with lines of text that are not among its texts."""
    for thing in texts:
        mode = pdfium.FPDFTextObj_GetTextRenderMode(thing)
        if mode == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE:
            # Text recognition has read the page.
            return False
        page.remove_obj(thing)
    scale = min(1.0, pdf_omissions.MAX_POINTS / max(page.get_size()))
    ink = page.render(scale, grayscale=True).to_numpy() < _INK
    strokes = (ink[:, 1:] & ~ink[:, :-1]).sum(axis=1)
    text_rows = (strokes >= ROW_STROKES).sum()
    return bool(1 - ink.mean() > PAPER_SHARE and text_rows > TEXT_ROWS_SHARE * len(strokes))


def _check_blank_pdf_pages(data: bytes, contents: list[_PageContent]) -> None:
    """Check the pages on which PDFium finds nothing.

    It returns a page whose content cannot be unpacked as an empty one.
    """
    doubted = [number for number, page in enumerate(contents) if page.blank][
        :MAX_BLANK_PAGES_CHECKED
    ]
    if not doubted:
        return
    import pypdf  # noqa: PLC0415

    handler = _FirstPdfWarning()
    log = logging.getLogger("pypdf")
    log.addHandler(handler)
    try:
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted:
            reader.decrypt("")
        for number in doubted:
            handler.first = ""
            try:
                content = reader.pages[number].get_contents()
                if content is not None and not content.get_data().strip() and handler.first:
                    contents[number].unread = unread_page_placeholder(handler.first)
            except MemoryError:
                raise
            except Exception as error:  # A parser may raise anything on foreign bytes.
                contents[number].unread = unread_page_placeholder(document_error_line(error))
    except MemoryError:
        raise
    except Exception:
        # A file that only PDFium can open is not checked.
        return
    finally:
        log.removeHandler(handler)


class _FirstPdfWarning(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or document_error_line(record.getMessage())


def _first_pdf_page_failure(contents: list[_PageContent]) -> str:
    failure = next((page.unread for page in contents if page.unread and page.blank), "")
    return failure.partition(": ")[2].rstrip(")")


def _pdf_page_text(page: _PageContent, words: Counter[str]) -> str:
    lines = join_divided_words(separate_pdf_paragraphs(page.lines), words)
    text = "\n".join(lines).replace("\ufffe", "-").replace("\x02", "-").replace("\u00ad", "-")
    notes = [f"[Note: {note}]" for note in page.notes]
    return "\n\n".join([text, *notes] if text else notes)


def _pdf_page_label(document: Any, number: int) -> str:
    label = page_mark_text(str(document.get_page_label(number - 1)))
    return "" if label == str(number) else label


def _pdf_outline_sections(document: Any) -> dict[int, list[str]]:
    """Return the titles of the outline by the page they begin on."""
    sections: dict[int, list[str]] = {}
    try:
        for count, entry in enumerate(document.get_toc()):
            if count >= MAX_OUTLINE_ENTRIES:
                break
            place = entry.get_dest()
            page = place.get_index() if place else None
            title = " ".join(entry.get_title().split())
            if page is not None and title:
                sections.setdefault(page + 1, []).append(title)
    except pypdfium2.PdfiumError:
        return sections
    return sections


def _number_pdf_outline_titles(titles: list[str], text: str) -> list[str]:
    """Return the titles as on the page, with the numbers that outlines leave out."""
    numbered, start = [], 0
    for title in titles:
        words = r"\s+".join(map(re.escape, title.split()[:30]))
        heading = re.compile(rf"^[ \t]*({_NUMBER}\s+)?{words}", re.MULTILINE)
        match = heading.search(text, start)
        has_number = re.match(rf"{_NUMBER}\s", title)
        number = match[1].strip() if match and match[1] and not has_number else ""
        numbered.append(f"{number} {title}" if number else title)
        start = match.end() if match else start
    return numbered


def _pdf_page_begins_with_title(text: str, title: str) -> bool:
    """Whether the title is the first text on the page, apart from a running head."""
    head = " ".join(" ".join(text.split("\n")[:6]).split())[: len(title) + 100]
    return title in head

"""The text of a Word document (DOCX) with page numbers, as far as the file knows them.

A DOCX holds no pages: it holds explicit breaks (a page break, a paragraph or its style that
starts a page, a section that does) and, where Word saved it last, a trace of where each page
began when it was last laid out (`w:lastRenderedPageBreak`). Both are counted; a trace that
stands directly behind an explicit break is the same page boundary and is not.
Footnotes, headers, footers and deleted (tracked) text are left out.
"""

from collections.abc import Iterator
from io import BytesIO
from zipfile import BadZipFile, ZipFile

import docx
from docx.oxml.ns import qn
from lxml.etree import _Element

from activities.documents.pages import DocumentError

_P, _TBL, _TR, _TC = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_CHARACTERS = {
    qn("w:tab"): "\t",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
}
_SKIPPED = {qn("w:del"), qn("w:moveFrom"), qn("w:pPr"), qn("w:rPr"), qn("w:instrText")}
_PICTURES = {qn("w:drawing"), qn("w:pict"), qn("w:object")}
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# What else comes as an archive, by a member of it, and what to do about it.
_ARCHIVE = "a ZIP archive, not a Word document: unpack it first"
_OTHERS = {
    "xl/workbook.xml": "an Excel workbook: save its sheets as .csv",
    "ppt/presentation.xml": "a PowerPoint file: save it as PDF",
    "META-INF/container.xml": "an EPUB book: save it as PDF or HTML",
    "content.xml": "an OpenDocument file: save it as .docx or PDF",
}
_OFF = {"0", "false", "off"}
_SAME_PAGE = {"continuous", "nextColumn"}


def pages(name: str, data: bytes) -> list[str]:
    """The text of each page; paragraphs and table rows divided by empty lines."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            members = set(archive.namelist())
    except BadZipFile as error:
        raise DocumentError(f"{name}: the file is broken ({error}); get an intact copy") from error
    if "word/document.xml" not in members:
        what = next((what for part, what in _OTHERS.items() if part in members), _ARCHIVE)
        raise DocumentError(f"{name}: this is {what}")
    document = docx.Document(BytesIO(data))
    body = document.element.body
    walk = _Walk(_styles_starting_a_page(document.styles.element), _section_starts(body))
    walk.blocks(body)
    return walk.texts()


class _Walk:
    """One pass over the body: blocks of text are put on pages as breaks are met."""

    def __init__(self, styles: frozenset[str], sections: Iterator[bool], cell: bool = False):
        self._styles = styles
        self._sections = sections
        self.pages: list[list[str]] = [[]]
        self._line: list[str] = []
        self._boxes: list[_Element] = []
        self._used = cell  # is there anything on the present page yet
        self._explicit = False  # was the present page begun by an explicit break

    def texts(self) -> list[str]:
        return ["\n\n".join(blocks) for blocks in self.pages]

    def blocks(self, parent: _Element) -> None:
        for child in parent:
            if child.tag == _P:
                self._paragraph(child)
            elif child.tag == _TBL:
                self._table(child)
            elif isinstance(child.tag, str) and child.tag not in _SKIPPED:
                self.blocks(child)

    def _paragraph(self, paragraph: _Element) -> None:
        properties = paragraph.find(qn("w:pPr"))
        if properties is not None and _starts_a_page(properties, self._styles):
            self._new_page(even_if_empty=False)
        self._inline(paragraph)
        self._end_block()
        boxes, self._boxes = self._boxes, []
        for box in boxes:
            self.blocks(box)
        if (
            properties is not None
            and properties.find(qn("w:sectPr")) is not None
            and next(self._sections, False)
        ):
            self._new_page(even_if_empty=False)

    def _inline(self, parent: _Element) -> None:
        for child in parent:
            tag = child.tag
            if tag == qn("w:t"):
                self._text(child.text or "")
            elif tag in _CHARACTERS:
                self._text(_CHARACTERS[tag])
            elif tag == qn("w:br"):
                if child.get(qn("w:type")) == "page":
                    self._new_page(even_if_empty=True)
                else:
                    self._text("\n")
            elif tag == qn("w:lastRenderedPageBreak"):
                self._rendered()
            elif tag in _PICTURES:
                self._used, self._explicit = True, False
                self._boxes.extend(_text_boxes(child))
            elif tag == f"{_COMPATIBILITY}AlternateContent":
                # The alternatives say the same thing twice.
                self._inline(child[0])
            elif isinstance(tag, str) and tag not in _SKIPPED:
                self._inline(child)

    def _table(self, table: _Element) -> None:
        for row in table.iterchildren(_TR, qn("w:sdt"), qn("w:ins")):
            cells = []
            for cell in row.iter(_TC):
                if next(cell.iterancestors(_TC), None) is not next(row.iterancestors(_TC), None):
                    continue  # of a table within a cell: the cell's own walk reads it
                walk = _Walk(self._styles, iter(()), cell=True)
                walk.blocks(cell)
                cells.append(walk.pages)
            # Each cell of a row that is cut by a page end has its own trace of that one break.
            before = max((_leading(found) for found in cells), default=0)
            total = max((len(found) - 1 for found in cells), default=0)
            for _ in range(before):
                self._rendered()
            texts = [" ".join(text for page in found for text in page) for found in cells]
            if any(texts):
                self._text(" | ".join(texts).rstrip(" |"))
                self._end_block()
            for _ in range(total - before):
                self._rendered()

    def _text(self, text: str) -> None:
        self._line.append(text)
        if text.strip():
            self._used, self._explicit = True, False

    def _end_block(self) -> None:
        text = "".join(self._line).strip()
        self._line = []
        if text:
            self.pages[-1].append(text)

    def _new_page(self, *, even_if_empty: bool) -> None:
        """An explicit break. Only a break character makes an empty page; a paragraph or section
        that wants to start a page is content with one that has just begun."""
        if self._used or even_if_empty:
            self._end_block()
            self.pages.append([])
        self._used, self._explicit = False, True

    def _rendered(self) -> None:
        if self._explicit:
            self._explicit = False
            return
        self._end_block()
        self.pages.append([])
        self._used = False


def _leading(found: list[list[str]]) -> int:
    return next((number for number, page in enumerate(found) if page), 0)


def _text_boxes(picture: _Element) -> list[_Element]:
    fallback = f"{_COMPATIBILITY}Fallback"
    return [
        box
        for box in picture.iter(qn("w:txbxContent"))
        if next(box.iterancestors(fallback), None) is None
    ]


def _starts_a_page(properties: _Element, styles: frozenset[str]) -> bool:
    own = properties.find(qn("w:pageBreakBefore"))
    if own is not None:
        return _is_on(own)
    style = properties.find(qn("w:pStyle"))
    return style is not None and style.get(qn("w:val")) in styles


def _is_on(switch: _Element) -> bool:
    return switch.get(qn("w:val"), "1") not in _OFF


def _styles_starting_a_page(styles: _Element) -> frozenset[str]:
    """Ids of the paragraph styles that start a page, by themselves or by what they build on."""
    own: dict[str, bool | None] = {}
    base: dict[str, str | None] = {}
    for style in styles.iter(qn("w:style")):
        key = style.get(qn("w:styleId"), "")
        switch = style.find(f"{qn('w:pPr')}/{qn('w:pageBreakBefore')}")
        parent = style.find(qn("w:basedOn"))
        own[key] = None if switch is None else _is_on(switch)
        base[key] = None if parent is None else parent.get(qn("w:val"))

    def starts(key: str | None, depth: int = 0) -> bool:
        if key is None or key not in own or depth > 20:  # a broken file may build in a circle
            return False
        answer = own[key]
        return starts(base[key], depth + 1) if answer is None else answer

    return frozenset(key for key in own if starts(key))


def _section_starts(body: _Element) -> Iterator[bool]:
    """For each section but the first: does it start a new page. Its own type says so."""
    for section in list(body.iter(qn("w:sectPr")))[1:]:
        kind = section.find(qn("w:type"))
        yield kind is None or kind.get(qn("w:val")) not in _SAME_PAGE

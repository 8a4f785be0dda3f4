"""Extract the text of a Word document (DOCX), with page numbers where the file has them.

A DOCX has no pages. It has explicit breaks (page breaks, and paragraphs, styles or sections that
start a page) and, if Word saved it last, marks where pages began in its last layout
(`w:lastRenderedPageBreak`). Both are counted. A mark directly after an explicit break is the same
boundary and is not counted again.

If nothing shows where pages begin, a part begins at each heading, as in HTML.

Numbers of lists and headings, notes at the foot of their page, chosen form values, symbols and
formulas appear as Word shows them. Deleted, struck and hidden text is left out and counted. Headers
and footers are left out.
"""

from collections import Counter
from collections.abc import Iterator

from lxml.etree import _Element

from activities.documents import word_styles
from activities.documents.formulas import linearize_omml
from activities.documents.pages import Page, ReadingResult, page_mark_text
from activities.documents.word_package import WordPackage, open_package, qn

_P, _TBL, _TR, _TC = map(qn, ("w:p", "w:tbl", "w:tr", "w:tc"))
_CHARACTERS = {qn("w:tab"): "\t", qn("w:ptab"): "\t", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_DELETED = {qn("w:del"), qn("w:moveFrom")}
_SKIPPED = {
    *map(qn, ("w:pPr", "w:rPr", "w:instrText", "w:delInstrText", "w:rt", "w:tblPr", "w:tblGrid")),
    *map(qn, ("w:trPr", "w:tcPr", "w:sdtPr", "w:sectPr")),
}
_PICTURES = {qn("w:drawing"), qn("w:pict"), qn("w:object")}
_NOTES = {qn("w:footnoteReference"): "footnote", qn("w:endnoteReference"): "endnote"}
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SAME_PAGE = {"continuous", "nextColumn"}


def read_word(name: str, data: bytes) -> ReadingResult:
    """Return pages whose paragraphs and table rows are divided by empty lines, with notes at the
    foot.

    Raises:
        DocumentError: it is no Word document.
    """
    package = open_package(name, data)
    walk = _walk_word_body(package, by_headings=False)
    if len(walk.pages) == 1:
        # Programs other than Word do not record where pages begin.
        walk = _walk_word_body(package, by_headings=True)
    return ReadingResult(walk.finish_pages(), omitted_passages=dict(walk.context.omitted_passages))


def _walk_word_body(package: WordPackage, *, by_headings: bool) -> "_WordWalker":
    walk = _WordWalker(
        _DocumentContext(package), _word_section_starts(package.body), by_headings=by_headings
    )
    walk.read_blocks(package.body)
    return walk


class _DocumentContext:
    """State shared by all parts of a document: styles, counters, notes, omitted passages."""

    def __init__(self, package: WordPackage) -> None:
        self.styles = word_styles.Styles(package.styles)
        self.lists = word_styles.WordListNumbering(package.numbering, self.styles)
        self.omitted_passages: Counter[str] = Counter()
        self.formats = package.note_formats
        self._notes = package.notes
        self._counts: Counter[str] = Counter()

    def next_note(self, kind: str, key: str) -> tuple[str, _Element | None]:
        self._counts[kind] += 1
        mark = word_styles.format_list_number(self._counts[kind], self.formats[kind])
        return mark, self._notes[kind].get(key)


class _WordWalker:
    """One pass over the body that assigns blocks of text to pages."""

    def __init__(
        self,
        context: _DocumentContext,
        sections: Iterator[bool],
        *,
        cell: bool = False,
        by_headings: bool = False,
        note: bool = False,
    ) -> None:
        self.context = context
        self._is_note = note
        self._by_headings = by_headings
        self._sections = sections
        self.pages: list[list[str]] = [[]]
        self.titles: list[list[str]] = [[]]
        self.footnotes: list[list[str]] = [[]]
        """Footnotes of each page."""
        self.endnotes: list[str] = []
        self._line: list[str] = []
        self._boxes: list[_Element] = []
        self._used = cell  # is there anything on the present page yet
        self._explicit = False  # was the present page begun by an explicit break
        self._paragraph_style: str | None = None
        self._void = ""  # why the run before is left out

    def finish_pages(self) -> list[Page]:
        """Return the pages, with footnotes at the foot of each and endnotes on the last."""
        self.footnotes[-1] += self.endnotes
        pages, current = [], ""
        for number, blocks in enumerate(self.pages, 1):
            titles = self.titles[number - 1]
            heads_page = bool(titles and blocks and page_mark_text(blocks[0]) == titles[0])
            touched = titles if heads_page or not current else [current, *titles]
            current = titles[-1] if titles else current
            text = "\n\n".join([*blocks, *self.footnotes[number - 1]])
            pages.append(Page(number, text, sections=touched))
        return pages

    def read_blocks(self, parent: _Element) -> None:
        for child in parent:
            if child.tag == _P:
                self._read_paragraph(child)
            elif child.tag == _TBL:
                self._read_table(child)
            elif child.tag in _DELETED:
                self._leave_out("deleted", child)
            elif isinstance(child.tag, str) and child.tag not in _SKIPPED:
                self.read_blocks(child)

    def _read_paragraph(self, paragraph: _Element) -> None:
        properties = paragraph.find(qn("w:pPr"))
        styles = self.context.styles
        if styles.starts_a_page(properties):
            self._new_page(even_if_empty=False)
        is_heading = styles.is_heading(properties)
        if self._by_headings and is_heading and len(self.pages[-1]) > len(self.titles[-1]):
            self._end_page()
        self._paragraph_style = styles.paragraph_style(properties)
        self._void = ""
        line_start = len(self._line)
        self._read_inline(paragraph)
        is_shown = bool("".join(self._line).strip())
        if is_shown or not _is_paragraph_mark_deleted(properties):
            number = self.context.lists.next_number(properties)
            if number and is_shown:
                # A page break may have left the beginning on the page before.
                self._line.insert(min(line_start, len(self._line)), number)
        title = page_mark_text("".join(self._line)) if is_heading else ""
        self._end_block()
        if title:
            self.titles[-1].append(title)
        boxes, self._boxes = self._boxes, []
        for box in boxes:
            self.read_blocks(box)
        if (
            properties is not None
            and properties.find(qn("w:sectPr")) is not None
            and next(self._sections, False)
        ):
            self._new_page(even_if_empty=False)

    def _read_inline(self, parent: _Element) -> None:
        for child in parent:
            tag = child.tag
            if tag == qn("w:r"):
                self._read_run(child)
            elif tag in _DELETED:
                self._leave_out("deleted", child)
            elif tag == qn("w:t"):
                self._add_text(
                    word_styles.symbols_as_unicode(
                        child.text or "", word_styles.word_symbol_font(child)
                    )
                )
            elif tag == qn("w:sym"):
                self._add_text(word_styles.word_symbol_text(child))
            elif tag in _NOTES:
                self._add_note(_NOTES[tag], child)
            elif tag == qn("w:fldChar"):
                self._add_text(_word_form_value(child))
            elif tag == qn("m:oMath"):
                self._add_text(linearize_omml(child))
            elif tag in _CHARACTERS:
                self._add_text(_CHARACTERS[tag])
            elif tag == qn("w:br"):
                if child.get(qn("w:type")) == "page":
                    self._new_page(even_if_empty=True)
                else:
                    self._add_text("\n")
            elif tag == qn("w:lastRenderedPageBreak"):
                self._end_rendered_page()
            elif tag in _PICTURES:
                self._used, self._explicit = True, False
                self._boxes.extend(_word_text_boxes(child))
            elif tag == f"{_COMPATIBILITY}AlternateContent":
                # The alternatives repeat the same content.
                self._read_inline(child[0])
            elif isinstance(tag, str) and tag not in _SKIPPED:
                if tag == qn("w:hyperlink") and _is_word_note_mark(child):
                    self._join_note_number()
                self._read_inline(child)

    def _join_note_number(self) -> None:
        """Attach the note number that comes next to the end of the sentence before it."""
        before = "".join(self._line)
        if word_styles.may_note_number_follow(before):
            self._line = [before.rstrip(" ")]

    def _read_run(self, run: _Element) -> None:
        void = self.context.styles.omission_reason(run.find(qn("w:rPr")), self._paragraph_style)
        if not void:
            self._void = ""
            self._read_inline(run)
        elif any(text.text for text in run.iter(qn("w:t"))):
            # Neighbours that are omitted for the same reason count as one passage.
            self.context.omitted_passages[void] += self._void != void
            self._void = void

    def _leave_out(self, why: str, part: _Element) -> None:
        texts = part.iter(qn("w:t"), qn("w:delText"))
        if any((text.text or "").strip() for text in texts):
            self.context.omitted_passages[why] += 1

    def _add_note(self, kind: str, reference: _Element) -> None:
        mark, note = self.context.next_note(kind, reference.get(qn("w:id"), ""))
        shown = f"[{mark}]"
        if not word_styles.is_style_switch_on(reference.get(qn("w:customMarkFollows"), "0")):
            self._add_text(shown)
        if note is None or self._is_note:
            # A note of a note may lead back to it.
            return
        walk = _WordWalker(self.context, iter(()), cell=True, note=True)
        walk.read_blocks(note)
        text = "\n".join(text for page in walk.pages for text in page)
        if text:
            notes = self.footnotes[-1] if kind == "footnote" else self.endnotes
            notes.append(f"{shown} {text}")

    def _read_table(self, table: _Element) -> None:
        for row in table.iterchildren(_TR, qn("w:sdt"), qn("w:ins")):
            if row.find(f"{qn('w:trPr')}/{qn('w:del')}") is not None:
                self._leave_out("deleted", row)
                continue
            cells, notes = [], []
            for cell in row.iter(_TC):
                if next(cell.iterancestors(_TC), None) is not next(row.iterancestors(_TC), None):
                    continue  # in a table within a cell, which the cell's own walk reads
                walk = _WordWalker(self.context, iter(()), cell=True, note=self._is_note)
                walk.read_blocks(cell)
                cells.append(walk.pages)
                notes += [note for page in walk.footnotes for note in page]
                self.endnotes += walk.endnotes
                self.titles[-1] += [title for page in walk.titles for title in page]
            # Each cell of a row that a page end divides has its own mark of that one break.
            first_shown = (next((n for n, page in enumerate(pages) if page), 0) for pages in cells)
            before = max(first_shown, default=0)
            total = max((len(pages) - 1 for pages in cells), default=0)
            for _ in range(before):
                self._end_rendered_page()
            texts = [" ".join(text for page in pages for text in page) for pages in cells]
            if any(texts):
                self._add_text(" | ".join(texts).rstrip(" |"))
                self._end_block()
            self.footnotes[-1] += notes
            for _ in range(total - before):
                self._end_rendered_page()

    def _add_text(self, text: str) -> None:
        self._line.append(text)
        if text.strip():
            self._used, self._explicit = True, False

    def _end_block(self) -> None:
        text = "".join(self._line).strip()
        self._line = []
        if text:
            self.pages[-1].append(text)

    def _new_page(self, *, even_if_empty: bool) -> None:
        """Handle an explicit break.

        Only a break character creates an empty page. A paragraph or section that starts a page uses
        one that has just begun.
        """
        if self._used or even_if_empty:
            self._end_page()
        self._used, self._explicit = False, True

    def _end_rendered_page(self) -> None:
        if self._explicit:
            self._explicit = False
            return
        self._end_page()
        self._used = False

    def _end_page(self) -> None:
        self._end_block()
        for lists in (self.pages, self.titles, self.footnotes):
            lists.append([])


def _is_word_note_mark(link: _Element) -> bool:
    """Whether it is a number that links within the document, as converters write notes."""
    has_place = link.get(qn("w:anchor")) is not None
    return has_place and word_styles.is_possible_note_number(
        "".join(text.text or "" for text in link.iter(qn("w:t")))
    )


def _is_paragraph_mark_deleted(properties: _Element | None) -> bool:
    """Whether the paragraph's end mark is deleted, so that it continues in the next paragraph."""
    mark = f"{qn('w:rPr')}/{qn('w:del')}"
    return properties is not None and properties.find(mark) is not None


def _word_form_value(field: _Element) -> str:
    """Return the value of an old form field that has no text of its own."""
    data = field.find(qn("w:ffData"))
    if data is None:
        return ""
    box = data.find(qn("w:checkBox"))
    if box is not None:
        switches = (box.find(qn("w:checked")), box.find(qn("w:default")))
        chosen = next((switch for switch in switches if switch is not None), None)
        checked = chosen is not None and word_styles.is_style_switch_on(
            chosen.get(qn("w:val"), "1")
        )
        return "\u2612" if checked else "\u2610"
    choice = data.find(qn("w:ddList"))
    if choice is None:
        return ""
    entries = [entry.get(qn("w:val"), "") for entry in choice.iter(qn("w:listEntry"))]
    for name in ("w:result", "w:default"):
        if (place := choice.find(qn(name))) is not None:
            number = place.get(qn("w:val"), "0")
            return entries[int(number)] if number.isdigit() and int(number) < len(entries) else ""
    return entries[0] if entries else ""


def _word_text_boxes(picture: _Element) -> list[_Element]:
    fallback = f"{_COMPATIBILITY}Fallback"
    return [
        box
        for box in picture.iter(qn("w:txbxContent"))
        if next(box.iterancestors(fallback), None) is None
    ]


def _word_section_starts(body: _Element) -> Iterator[bool]:
    """Return for each section after the first whether it starts a new page, by its own type."""
    for section in list(body.iter(qn("w:sectPr")))[1:]:
        kind = section.find(qn("w:type"))
        yield kind is None or kind.get(qn("w:val")) not in _SAME_PAGE

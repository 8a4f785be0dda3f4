"""Extract an HTML document's visible text, without scripts, styles and navigation.

HTML has no pages; instead a part begins at each heading and carries it.
"""

import re
from collections import Counter
from contextlib import suppress
from html import unescape
from urllib.parse import urljoin

from lxml import etree, html

from activities.documents.css_classes import (
    HIDDEN,
    STRUCK,
    has_coloured_grounds,
    is_ground_coloured,
    omitted_css_classes,
)
from activities.documents.encoding import decode_by_html_declaration
from activities.documents.formulas import linearize_mathml
from activities.documents.pages import DocumentError, Page, ReadingResult, page_mark_text
from activities.documents.word_styles import (
    format_list_number,
    is_possible_note_number,
    may_note_number_follow,
)

_DROPPED = {"head", "script", "style", "nav", "template", "noscript", "svg", "datalist"}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div"),
    *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4"),
    *("h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_CELLS = {"td", "th"}
_TABLE_PARTS = {"table", "thead", "tbody", "tfoot", "tr"}
"""Elements in which browsers ignore white space between the elements."""
_BROKEN_ROWS = {
    *("blockquote", "dl", "fieldset", "form", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol"),
    *("pre", "table", "ul"),
}
"""A row with one of these in a cell does not fit into one line."""
MAX_CELL_CHARACTERS = 1000
"""Longest cell of a row in one line; longer ones are the columns of a page."""
MAX_SPAN = 100
_VOID = {"del", "s", "strike"}
_INVISIBLE = str.maketrans("", "", "\u00ad\u200b\u2060\ufeff")
"""Places for line breaks, and marks without a width."""
_NO_VALUE = {"hidden", "password", "submit", "button", "image", "reset", "file"}
_LIST_FORMATS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
MAX_LINKS = 1000
MAX_ADDRESS_CHARACTERS = 500
"""Longest address, in characters; longer ones carry data."""
MAX_LINK_TEXT = 100


def read_html(name: str, data: bytes) -> ReadingResult:
    """Return blocks divided by empty lines, with table cells divided by ` | `."""
    if not data.strip():
        return ReadingResult([Page(1, "")])
    text, guess = decode_by_html_declaration(data)
    root = _parse_html_root(name, text)
    walk = _HtmlWalker(*omitted_css_classes(root), has_grounds=has_coloured_grounds(root))
    walk.walk_tree(root)
    pages = [
        Page(number, part, _collect_html_links(root) if number == 1 else [], sections=titles)
        for number, (part, titles) in enumerate(walk.text_parts(), 1)
    ]
    return ReadingResult(pages, guess, dict(walk.omitted))


_XHTML = "http://www.w3.org/1999/xhtml"
_DECLARATION = re.compile(r"\s*<\?xml[^>]*>")
_NAMED_CHARACTER = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z]\w*;")


def _parse_html_root(name: str, text: str) -> html.HtmlElement:
    if _XHTML in text[:4096]:
        # Names may have prefixes, and any element may close itself: that is XML.
        strict = html.XHTMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        plain = _NAMED_CHARACTER.sub(lambda match: unescape(match[0]), text)
        with suppress(etree.XMLSyntaxError):
            root = etree.fromstring(
                _DECLARATION.sub("", plain, 1).encode("utf-8", "replace"), strict
            )
            if not any(True for _ in root.iter(etree.Entity)):
                for node in root.iter(etree.Element):
                    node.tag = etree.QName(node).localname
                return root
    # Without `huge_tree`, elements nested deeper than 256 are dropped, and unclosed tags nest.
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    root = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise DocumentError(f"{name}: its elements lie too deep in one another; save it as text")
    return root


class _HtmlWalker:
    def __init__(
        self, struck_classes: set[str], hidden_classes: set[str], *, has_grounds: bool
    ) -> None:
        self.omitted: Counter[str] = Counter()
        """Passages that are left out, by reason."""
        self._struck_classes = struck_classes
        self._hidden_classes = hidden_classes
        self._has_grounds = has_grounds
        self._parts: list[tuple[list[str], list[str]]] = [([], [])]
        self._heading_start: int | None = None
        self._is_headings_only = True
        self._next_numbers: dict[html.HtmlElement, int] = {}
        self._line_row: html.HtmlElement | None = None
        """The table row that is written as one line."""
        self._row_start = 0
        self._column = 0
        self._spans: dict[html.HtmlElement | None, dict[int, int]] = {}
        """By table and column: further rows that a cell above still covers."""
        self._begins_item = False
        """Whether a list item's mark or number waits for the item's first words."""

    def text_parts(self) -> list[tuple[str, list[str]]]:
        return [(_tidy_html_text("".join(texts)), titles) for texts, titles in self._parts]

    def walk_tree(self, root: html.HtmlElement) -> None:
        walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            tag = node.tag if isinstance(node.tag, str) else ""
            if event == "start":
                if self._is_omitted(node, tag):
                    walk.skip_subtree()
                else:
                    self._start_element(node, tag)
                    if tag in ("math", "select", "textarea"):
                        walk.skip_subtree()
            else:
                self._end_element(node, tag)

    @property
    def _current_texts(self) -> list[str]:
        return self._parts[-1][0]

    def _is_omitted(self, node: html.HtmlElement, tag: str) -> bool:
        if tag in _DROPPED:
            return True
        style, classes = node.get("style", ""), node.get("class", "").split()
        classes += [f"#{node.get('id')}"] if node.get("id") else []
        if tag == "font" and node.get("color"):
            style = f"{style};color:{node.get('color')}"
        struck = tag in _VOID or bool(style and STRUCK.search(style))
        hidden = node.get("hidden") is not None or bool(
            style
            and (HIDDEN.search(style) or is_ground_coloured(style, has_grounds=self._has_grounds))
        )
        if classes:
            struck = struck or not self._struck_classes.isdisjoint(classes)
            hidden = hidden or not self._hidden_classes.isdisjoint(classes)
        if (struck or hidden) and node.text_content().strip():
            self.omitted["struck" if struck else "hidden"] += 1
        return struck or hidden

    def _start_element(self, node: html.HtmlElement, tag: str) -> None:
        if tag in _HEADINGS:
            if not self._is_headings_only:
                self._parts.append(([], []))
                self._is_headings_only = True
            self._heading_start = len(self._current_texts)
        if tag in _CELLS:
            self._start_cell(node)
        elif not (self._begins_item and tag in _BLOCKS):
            self._append_text(self._block_separator(tag))
        if tag == "tr":
            self._start_row(node)
        elif tag == "li":
            mark = self._item_mark(node)
            self._append_text(mark)
            self._begins_item = bool(mark)
        elif _is_html_note_mark(node, tag):
            self._join_note_number()
        elif tag == "math":
            self._add_content(linearize_mathml(node))
        elif tag == "select":
            self._add_content(", ".join(_selected_options(node)))
        elif tag == "input":
            self._add_content(_html_document_field(node))
        if tag not in ("math", "select"):
            self._add_flow_text(node.text, node)

    def _end_element(self, node: html.HtmlElement, tag: str) -> None:
        if tag in _HEADINGS and self._heading_start is not None:
            # Generated by programs as a link to the heading.
            words = "".join(self._current_texts[self._heading_start :]).rstrip("¶# \n")
            if title := page_mark_text(words):
                self._parts[-1][1].append(title)
            self._heading_start = None
        if tag == "li":
            self._begins_item = False
        if node is self._line_row:
            self._end_line_row()
        if tag in _BLOCKS and not self._begins_item:
            self._append_text(self._block_separator(tag))
        self._add_flow_text(node.tail, node.getparent())

    def _block_separator(self, tag: str) -> str:
        """Return what stands before an element, and after one that is a block."""
        if tag not in _BLOCKS and tag != "br":
            return ""
        if self._line_row is not None:
            texts = self._current_texts[self._row_start :]
            return " " if texts and not texts[-1].endswith(" ") else ""
        return "\n\n" if tag in _BLOCKS else "\n"

    def _start_row(self, row: html.HtmlElement) -> None:
        self._column = 0
        covered = self._spans.get(next(row.iterancestors("table"), None), {})
        if self._line_row is None and _fits_into_a_line(row, any(covered.values())):
            self._line_row, self._row_start = row, len(self._current_texts)

    def _end_line_row(self) -> None:
        texts = self._current_texts
        while len(texts) > self._row_start and not texts[-1].strip(" |"):
            texts.pop()
        self._line_row = None

    def _start_cell(self, cell: html.HtmlElement) -> None:
        """Mark the beginning of a cell, and the columns before it that cells above cover."""
        table = next(cell.iterancestors("table"), None)
        spans = self._spans.setdefault(table, {})
        while spans.get(self._column, 0) > 0:
            self._add_cell_mark()
            spans[self._column] -= 1
            self._column += 1
        self._add_cell_mark()
        width = max(1, min(_parse_html_integer(cell.get("colspan"), 1), MAX_SPAN))
        if (height := min(_parse_html_integer(cell.get("rowspan"), 1), MAX_SPAN)) > 1:
            spans |= {self._column + n: height - 1 for n in range(width)}
        self._column += width

    def _add_cell_mark(self) -> None:
        if not self._column:
            return
        if self._line_row is None:
            self._append_text(" | ")
            return
        texts = self._current_texts
        while len(texts) > self._row_start and texts[-1] == " ":
            texts.pop()
        self._append_text(" | " if len(texts) > self._row_start else "| ")

    def _add_flow_text(self, text: str | None, holder: html.HtmlElement | None) -> None:
        text = text.translate(_INVISIBLE) if text else ""
        if not text or (holder is not None and holder.tag in _TABLE_PARTS and not text.strip()):
            return
        if not _is_preformatted(holder):
            text = re.sub(r"\s+", " ", text)
            # Where something is left out, the spaces on both sides meet.
            if text[0] == " " and self._current_texts and self._current_texts[-1][-1] == " ":
                text = text[1:]
        self._add_content(text)

    def _append_text(self, text: str) -> None:
        # Empty pieces would slow down the search for the preceding text.
        if text:
            self._current_texts.append(text)

    def _add_content(self, text: str) -> None:
        self._append_text(text)
        if text.strip():
            self._begins_item = False
            if self._heading_start is None:
                self._is_headings_only = False

    def _join_note_number(self) -> None:
        """Attach the note number that comes next to the end of the sentence before it."""
        texts = self._current_texts
        if texts and texts[-1][-1].isdigit():
            # Otherwise it would look like the number's last digit.
            self._append_text("^")
            return
        last = next((n for n in reversed(range(len(texts))) if texts[n] != " "), None)
        if last is not None and may_note_number_follow(texts[last]):
            del texts[last + 1 :]
            texts[last] = texts[last].rstrip(" ")

    def _item_mark(self, item: html.HtmlElement) -> str:
        """Return what a browser shows before a list item."""
        parent = item.getparent()
        if parent is not None and parent.tag == "ul":
            return "\u2022 "
        if parent is None or parent.tag != "ol":
            return ""
        is_reversed = parent.get("reversed") is not None
        if parent not in self._next_numbers:
            first = len(parent.findall("li")) if is_reversed else 1
            self._next_numbers[parent] = _parse_html_integer(parent.get("start"), first)
        number = _parse_html_integer(item.get("value"), self._next_numbers[parent])
        self._next_numbers[parent] = number + (-1 if is_reversed else 1)
        return (
            f"{format_list_number(number, _LIST_FORMATS.get(parent.get('type', ''), 'decimal'))}. "
        )


def _is_html_note_mark(node: html.HtmlElement, tag: str) -> bool:
    """Whether it is a raised number, or a number that links within the document."""
    if tag != "sup" and not (tag == "a" and "#" in node.get("href", "")):
        return False
    return is_possible_note_number("".join(node.itertext()))


def _collect_html_links(root: html.HtmlElement) -> list[tuple[str, str]]:
    """Collect the first links of a page, relative to its address, each with its words."""
    base = next((node.get("href") for node in root.iter("base") if node.get("href")), "")
    links: dict[str, str] = {}
    for node in root.iter("a"):
        address = (node.get("href") or "").strip()
        if not address or address.startswith("#") or len(address) > MAX_ADDRESS_CHARACTERS:
            continue
        with suppress(ValueError):
            address = urljoin(base, address)
        links.setdefault(address, " ".join(node.text_content().split())[:MAX_LINK_TEXT])
        if len(links) == MAX_LINKS:
            break
    return list(links.items())


def _fits_into_a_line(row: html.HtmlElement, is_covered: bool) -> bool:
    """Whether a table row has several cells, and in them nothing but words and paragraphs.

    Args:
        row: The row.
        is_covered: Whether cells of earlier rows cover some of its columns.
    """
    cells = [cell for cell in row if cell.tag in _CELLS]
    return len(cells) + is_covered > 1 and not any(
        any(node.tag in _BROKEN_ROWS for node in cell.iterdescendants())
        or len(cell.text_content()) > MAX_CELL_CHARACTERS
        for cell in cells
    )


def _parse_html_integer(text: str | None, otherwise: int) -> int:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text.strip()) else otherwise


def _selected_options(select: html.HtmlElement) -> list[str]:
    options = list(select.iter("option"))
    chosen = [option for option in options if option.get("selected") is not None]
    if not chosen and select.get("multiple") is None:
        chosen = options[:1]
    return [" ".join(option.text_content().split()) for option in chosen]


def _html_document_field(field: html.HtmlElement) -> str:
    kind = field.get("type", "text").lower()
    if kind in ("checkbox", "radio"):
        return "[x] " if field.get("checked") is not None else "[ ] "
    return "" if kind in _NO_VALUE else field.get("value", "")


def _is_preformatted(holder: html.HtmlElement | None) -> bool:
    return holder is not None and (
        holder.tag == "pre" or next(holder.iterancestors("pre"), None) is not None
    )


def _tidy_html_text(text: str) -> str:
    lines = (line.rstrip() for line in text.split("\n"))
    # Marks between cells of several lines divide nothing. Outside <pre>, white space at the
    # beginning of a line is one space.
    trimmed = (re.sub(r"^ (?:\|(?: |$))+|^ (?=\S)", "", line) for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(trimmed)).strip()

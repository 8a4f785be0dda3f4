"""Extract an HTML document's visible text, without scripts, styles and navigation.

HTML has no pages; instead a part begins at each heading and carries it.
"""

import re
from contextlib import suppress
from urllib.parse import urljoin

from lxml import etree, html

from activities.documents.encoding import decode_by_html_declaration
from activities.documents.formulas import linearize_mathml
from activities.documents.numbering import (
    format_list_number,
    is_possible_note_number,
    may_note_number_follow,
)
from activities.documents.pages import DocumentError, Page, page_mark_text
from activities.documents.reading_result import ReadingResult

_DROPPED = {"head", "script", "style", "nav", "template", "noscript", "svg", "datalist"}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div"),
    *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4"),
    *("h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_CELLS = {"td", "th"}
_VOID = {"del", "s", "strike"}
_STRUCK = re.compile(r"text-decoration(?:-line)?\s*:[^;]*line-through", re.IGNORECASE)
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_CLASS_RULE = re.compile(r"([^{}]{1,500})\{([^{}]{0,2000})\}")
_CLASS = re.compile(r"(?:^|,)\s*[\w]*\.([\w-]+)\s*(?=,|$)")
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
    walk = _HtmlWalker(_struck_css_classes(root))
    walk.walk_tree(root)
    pages = [
        Page(number, part, _collect_html_links(root) if number == 1 else [], sections=titles)
        for number, (part, titles) in enumerate(walk.text_parts(), 1)
    ]
    return ReadingResult(pages, guess, {"struck": walk.struck} if walk.struck else {})


def _parse_html_root(name: str, text: str) -> html.HtmlElement:
    # Without `huge_tree`, elements nested deeper than 256 are dropped, and unclosed tags nest.
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    root = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise DocumentError(f"{name}: its elements lie too deep in one another; save it as text")
    return root


class _HtmlWalker:
    """One pass over the elements."""

    def __init__(self, struck_classes: set[str]) -> None:
        self.struck = 0
        self._struck_classes = struck_classes
        self._parts: list[tuple[list[str], list[str]]] = [([], [])]
        self._heading_start: int | None = None
        self._is_headings_only = True
        self._next_numbers: dict[html.HtmlElement, int] = {}
        self._begins_item = False
        """Whether a list item's mark or number waits for the item's first words."""

    def text_parts(self) -> list[tuple[str, list[str]]]:
        """Return the text of each part, and its headings."""
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
        style = node.get("style", "")
        struck = tag in _VOID or bool(style and _STRUCK.search(style))
        if not struck and self._struck_classes:
            struck = not self._struck_classes.isdisjoint(node.get("class", "").split())
        if struck and node.text_content().strip():
            self.struck += 1
        hidden = node.get("hidden") is not None or bool(style and _HIDDEN.search(style))
        return struck or hidden or tag in _DROPPED

    def _start_element(self, node: html.HtmlElement, tag: str) -> None:
        if tag in _HEADINGS:
            if not self._is_headings_only:
                self._parts.append(([], []))
                self._is_headings_only = True
            self._heading_start = len(self._current_texts)
        if not (self._begins_item and tag in _BLOCKS):
            self._append_text(_html_block_separator(tag))
        if tag == "li":
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
        self._append_text("\n\n" if tag in _BLOCKS and not self._begins_item else "")
        self._add_flow_text(node.tail, node.getparent())

    def _add_flow_text(self, text: str | None, holder: html.HtmlElement | None) -> None:
        if not text:
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


def _struck_css_classes(root: html.HtmlElement) -> set[str]:
    """Return the class names that a style sheet in the document strikes out."""
    sheets = " ".join(node.text or "" for node in root.iter("style"))[:1_000_000]
    rules = re.sub(r"/\*.*?\*/", "", sheets, flags=re.DOTALL)
    return {
        name
        for selector, style in _CLASS_RULE.findall(rules)
        if _STRUCK.search(style)
        for name in _CLASS.findall(selector.strip())
    }


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


def _html_block_separator(tag: str) -> str:
    if tag in _BLOCKS:
        return "\n\n"
    if tag in _CELLS:
        return " | "
    return "\n" if tag == "br" else ""


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
    # A row begins with its first cell's mark. Outside <pre>, other white space becomes one space.
    trimmed = (re.sub(r"^ ?(?:\| )+|^ (?=\S)", "", line) for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(trimmed)).strip()

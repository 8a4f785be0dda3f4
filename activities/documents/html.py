"""The text of an HTML document: what a reader sees, without scripts, styles and navigation."""

import re
from contextlib import suppress
from urllib.parse import urljoin

from lxml import etree, html

from activities.documents.pages import DocumentError
from activities.documents.text import decoded, guessed, is_utf8, wide

_DROPPED = {"head", "script", "style", "nav", "template", "noscript", "svg", "math", "select"}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div"),
    *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4"),
    *("h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
}
_CELLS = {"td", "th"}
MOST_LINKS = 1000
MOST_ADDRESS = 500
"""Characters; longer ones carry data and not a place."""
MOST_WORDS = 100
_DECLARED = re.compile(
    rb"""<(?:\?xml|meta)\b[^>]{0,300}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""",
    re.IGNORECASE | re.ASCII,
)


def pages(name: str, data: bytes) -> list[str]:
    """One page: blocks divided by empty lines, the cells of a table row by ` | `."""
    if not data.strip():
        return [""]
    parts: list[str] = []
    walk = etree.iterwalk(_parsed(name, data), events=("start", "end", "comment", "pi"))
    for event, node in walk:
        tag = node.tag if isinstance(node.tag, str) else ""
        if event == "start" and tag in _DROPPED:
            walk.skip_subtree()
        elif event == "start":
            # A note's number behind a number would pass for its last digit.
            parts.append("^" if _is_raised_number(node, parts) else _before(tag))
            parts.append(_text(node.text, node))
        else:
            parts.append("\n\n" if tag in _BLOCKS else "")
            parts.append(_text(node.tail, node.getparent()))
    return [_tidy("".join(parts))]


def links(name: str, data: bytes) -> list[tuple[str, str]]:
    """The first addresses that a page leads to, relative to its own, each with its words."""
    root = _parsed(name, data)
    base = next((node.get("href") for node in root.iter("base") if node.get("href")), "")
    found: dict[str, str] = {}
    for node in root.iter("a"):
        address = (node.get("href") or "").strip()
        if not address or address.startswith("#") or len(address) > MOST_ADDRESS:
            continue
        with suppress(ValueError):
            address = urljoin(base, address)
        found.setdefault(address, " ".join(node.text_content().split())[:MOST_WORDS])
        if len(found) == MOST_LINKS:
            break
    return list(found.items())


def _parsed(name: str, data: bytes) -> html.HtmlElement:
    # Without `huge_tree` what lies deeper than 256 elements is left out, and tags that are never
    # closed lie in one another.
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    root = html.document_fromstring(_in_utf8(data), parser=parser)
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise DocumentError(f"{name}: its elements lie too deep in one another; save it as text")
    return root


def _in_utf8(data: bytes) -> bytes:
    """Old pages declare an encoding; newer ones are UTF-8 anyhow."""
    if encoding := wide(data):
        return decoded(data, encoding).encode()
    if is_utf8(data):
        return data
    declared = _DECLARED.search(data[:4096])
    # What stands here to be read is no UTF-16, whatever it says.
    name = declared[1].decode("ascii") if declared else ""
    not_that = name.lower().startswith("utf-16")
    return (guessed(data) if not_that or not name else decoded(data, name)).encode()


def _before(tag: str) -> str:
    if tag in _BLOCKS:
        return "\n\n"
    if tag in _CELLS:
        return " | "
    return "\n" if tag == "br" else ""


def _is_raised_number(node: html.HtmlElement, parts: list[str]) -> bool:
    if node.tag != "sup" or not "".join(node.itertext()).strip().isdigit():
        return False
    return next((part for part in reversed(parts) if part), "")[-1:].isdigit()


def _text(text: str | None, holder: html.HtmlElement | None) -> str:
    if not text:
        return ""
    preformatted = holder is not None and (
        holder.tag == "pre" or next(holder.iterancestors("pre"), None) is not None
    )
    return text if preformatted else re.sub(r"\s+", " ", text)


def _tidy(text: str) -> str:
    lines = (line.rstrip() for line in text.split("\n"))
    # A row starts with the mark of its first cell; outside of <pre> the rest is one space.
    trimmed = (re.sub(r"^ ?(?:\| )+|^ (?=\S)", "", line) for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(trimmed)).strip()

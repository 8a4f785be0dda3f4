"""The text of an HTML document: what a reader sees, without scripts, styles and navigation."""

import re

from lxml import etree, html

_DROPPED = {"head", "script", "style", "nav", "template", "noscript", "svg", "math", "select"}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div"),
    *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4"),
    *("h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
}
_CELLS = {"td", "th"}


def pages(name: str, data: bytes) -> list[str]:
    """One page: blocks divided by empty lines, the cells of a table row by ` | `."""
    # Old pages declare an encoding (lxml reads the declaration); newer ones are UTF-8 anyhow.
    try:
        data.decode("utf-8")
        parser = html.HTMLParser(encoding="utf-8")
    except UnicodeDecodeError:
        parser = html.HTMLParser()
    if not data.strip():
        return [""]
    root = html.document_fromstring(data, parser=parser)
    parts: list[str] = []
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, node in walk:
        tag = node.tag if isinstance(node.tag, str) else ""
        if event == "start" and tag in _DROPPED:
            walk.skip_subtree()
        elif event == "start":
            parts.append(_before(tag))
            parts.append(_text(node.text, node))
        else:
            parts.append("\n\n" if tag in _BLOCKS else "")
            parts.append(_text(node.tail, node.getparent()))
    return [_tidy("".join(parts))]


def _before(tag: str) -> str:
    if tag in _BLOCKS:
        return "\n\n"
    if tag in _CELLS:
        return " | "
    return "\n" if tag == "br" else ""


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

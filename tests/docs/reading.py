"""The documentation as data: its pages, code blocks, links and headings."""

import re
from pathlib import Path

from scripts.docs.__main__ import ROOT, documentation_pages

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")

__all__ = [
    "ROOT",
    "anchors",
    "blocks",
    "commands",
    "documentation_pages",
    "links",
    "page",
    "tables",
]


def page(name: str) -> str:
    """Return the text of a page of `docs/`."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language."""
    return [code for block_language, code in _BLOCK.findall(text) if block_language == language]


def links(path: Path) -> list[str]:
    """Return the targets of a page's links."""
    return _LINK.findall(_BLOCK.sub("", path.read_text(encoding="utf-8")))


def anchors(path: Path) -> set[str]:
    """Return the names under which a page's headings can be linked to."""
    text = _BLOCK.sub("", path.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


def commands(text: str) -> list[str]:
    """Return every command line: of shell blocks, with continued lines joined, and in the text."""
    joined = [block.replace("\\\n", " ") for block in blocks(text, "sh")]
    lines = [line.partition("  #")[0].strip() for block in joined for line in block.splitlines()]
    return [*lines, *_INLINE.findall(_BLOCK.sub("", text))]


def tables(text: str) -> list[list[str]]:
    """Return the rows of each table."""
    return [table.splitlines() for table in _TABLE.findall(_BLOCK.sub("", text))]

"""What styles and lists of a Word file say of a paragraph: page breaks, headings, numbers, void."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lxml.etree import _Element

from activities.documents.numbering import in_format
from activities.documents.word_package import qn

Found = TypeVar("Found")

_OFF = {"0", "false", "off", "none"}
_HEADING = re.compile(r"(?:heading|title|überschrift|titel)\b", re.IGNORECASE)
_PLACE = re.compile(r"%([1-9])")
_MOST_BASES = 20
"""A broken file may build a style on itself."""
_LEVELS = 9


def is_on(value: str) -> bool:
    """Whether the value of a switch turns it on."""
    return value not in _OFF


def _switch(properties: _Element | None, name: str) -> bool | None:
    found = None if properties is None else properties.find(qn(name))
    return None if found is None else is_on(found.get(qn("w:val"), "1"))


def _value(properties: _Element | None, name: str) -> str | None:
    found = None if properties is None else properties.find(qn(name))
    return None if found is None else found.get(qn("w:val"))


class Styles:
    """The styles of a document, with what they take over from those they build on."""

    def __init__(self, styles: _Element | None) -> None:
        self._styles: dict[str, _Element] = {}
        self._default: str | None = None
        for style in () if styles is None else styles.iterchildren(qn("w:style")):
            key = style.get(qn("w:styleId"), "")
            self._styles[key] = style
            is_default = is_on(style.get(qn("w:default"), "0"))
            if is_default and style.get(qn("w:type")) == "paragraph":
                self._default = key

    def of_paragraph(self, properties: _Element | None) -> str | None:
        """The id of a paragraph's style."""
        return _value(properties, "w:pStyle") or self._default

    def inherited(self, key: str | None, of: Callable[[_Element], Found | None]) -> Found | None:
        """What the style says, or the first one that it builds on."""
        for _ in range(_MOST_BASES):
            style = self._styles.get(key or "")
            if style is None:
                return None
            if (found := of(style)) is not None:
                return found
            key = _value(style, "w:basedOn")
        return None

    def starts_a_page(self, properties: _Element | None) -> bool:
        """Whether the paragraph begins a new page."""
        own = _switch(properties, "w:pageBreakBefore")
        if own is None:
            own = self.inherited(
                self.of_paragraph(properties),
                lambda style: _switch(style.find(qn("w:pPr")), "w:pageBreakBefore"),
            )
        return bool(own)

    def is_heading(self, properties: _Element | None) -> bool:
        """Whether the paragraph is one by its level in the outline or the name of its style."""
        level = _value(properties, "w:outlineLvl")
        if level is None:
            level = self.inherited(self.of_paragraph(properties), _outline)
        return level is not None and level.isdigit() and int(level) < _LEVELS

    def void(self, run: _Element | None, paragraph_style: str | None) -> str:
        """Why a run is not shown as valid: `struck` or `hidden`; empty if it is."""
        for why, names in (("hidden", ("w:vanish",)), ("struck", ("w:strike", "w:dstrike"))):
            if any(self._is_switched(run, name, paragraph_style) for name in names):
                return why
        return ""

    def _is_switched(self, run: _Element | None, name: str, paragraph_style: str | None) -> bool:
        own = _switch(run, name)
        for key in (_value(run, "w:rStyle"), paragraph_style):
            if own is None and key:
                own = self.inherited(key, lambda style: _switch(style.find(qn("w:rPr")), name))
        return bool(own)


def _outline(style: _Element) -> str | None:
    level = _value(style.find(qn("w:pPr")), "w:outlineLvl")
    name = _value(style, "w:name") or ""
    return level if level is not None else ("0" if _HEADING.match(name) else None)


@dataclass
class _Level:
    start: int = 1
    kind: str = "decimal"
    text: str = ""
    gap: str = " "
    legal: bool = False
    restarts_after: int | None = None


@dataclass
class _List:
    levels: dict[int, _Level] = field(default_factory=dict)
    styled: dict[str, int] = field(default_factory=dict)
    """The level of paragraphs by their style."""
    counts: dict[int, int] = field(default_factory=dict)


class Lists:
    """The lists of a document, counted as its paragraphs come."""

    def __init__(self, numbering: _Element | None, styles: Styles) -> None:
        self._styles = styles
        self._lists: dict[str, _List] = {}
        self._used: set[tuple[str, int]] = set()
        self._starts: dict[tuple[str, int], int] = {}
        self._abstract: dict[str, str] = {}
        if numbering is None:
            return
        for abstract in numbering.iterchildren(qn("w:abstractNum")):
            self._lists[abstract.get(qn("w:abstractNumId"), "")] = _list(abstract)
        for num in numbering.iterchildren(qn("w:num")):
            key = num.get(qn("w:numId"), "")
            self._abstract[key] = _value(num, "w:abstractNumId") or ""
            for override in num.iterchildren(qn("w:lvlOverride")):
                level = _digits(override.get(qn("w:ilvl")), 0)
                start = _value(override, "w:startOverride")
                if start is not None:
                    self._starts[key, level] = _digits(start, 1)

    def number(self, properties: _Element | None) -> str:
        """What Word puts before the paragraph, with the space behind it; empty if nothing."""
        key, level = self._place(properties)
        found = self._lists.get(self._abstract.get(key, ""))
        if found is None or level not in found.levels:
            return ""
        self._count(key, level, found)
        shown = found.levels[level]
        if shown.kind == "bullet":
            return "\u2022 "
        if shown.kind == "none":
            return ""

        def part(place: re.Match[str]) -> str:
            other = int(place[1]) - 1
            of = found.levels.get(other, _Level())
            count = found.counts.get(other, of.start)
            return in_format(count, "decimal" if shown.legal else of.kind)

        text = _PLACE.sub(part, shown.text)
        return f"{text}{shown.gap}" if text.strip() else ""

    def _place(self, properties: _Element | None) -> tuple[str, int]:
        """The list of the paragraph, by its own properties or by its style, and the level."""
        own = None if properties is None else properties.find(qn("w:numPr"))
        style = self._styles.of_paragraph(properties)
        key = _value(own, "w:numId")
        level = _value(own, "w:ilvl")
        if key is None:
            inherited = self._styles.inherited(style, _list_of_style)
            key = _value(inherited, "w:numId")
            level = level if level is not None else _value(inherited, "w:ilvl")
        if key is None or key == "0":
            return "", 0
        if level is None and style:
            styled = self._lists.get(self._abstract.get(key, ""), _List()).styled
            return key, styled.get(style, 0)
        return key, _digits(level, 0)

    def _count(self, key: str, level: int, found: _List) -> None:
        counts = found.counts
        start = self._starts.get((key, level))
        if start is not None and (key, level) not in self._used:
            counts[level] = start
        elif level in counts:
            counts[level] += 1
        else:
            counts[level] = found.levels[level].start
        self._used.add((key, level))
        for deeper in [other for other in counts if other > level]:
            after = found.levels.get(deeper, _Level()).restarts_after
            if after is None or level < after:
                del counts[deeper]


def _list_of_style(style: _Element) -> _Element | None:
    properties = style.find(qn("w:pPr"))
    return None if properties is None else properties.find(qn("w:numPr"))


def _list(abstract: _Element) -> _List:
    found = _List()
    for entry in abstract.iterchildren(qn("w:lvl")):
        number = _digits(entry.get(qn("w:ilvl")), 0)
        gap = _value(entry, "w:suff")
        restart = _value(entry, "w:lvlRestart")
        found.levels[number] = _Level(
            start=_digits(_value(entry, "w:start"), 1),
            kind=_value(entry, "w:numFmt") or "decimal",
            text=_value(entry, "w:lvlText") or "",
            gap="" if gap == "nothing" else " ",
            legal=bool(_switch(entry, "w:isLgl")),
            restarts_after=None if restart is None else _digits(restart, 0),
        )
        if style := _value(entry, "w:pStyle"):
            found.styled[style] = number
    return found


def _digits(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise

"""What styles and lists determine for a paragraph: page breaks, headings, numbers, omission."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lxml.etree import _Element

from activities.documents.numbering import format_list_number
from activities.documents.word_package import word_xml_name

StyleValue = TypeVar("StyleValue")

_OFF = {"0", "false", "off", "none"}
_HEADING = re.compile(r"(?:heading|title|überschrift|titel)\b", re.IGNORECASE)
_PLACE = re.compile(r"%([1-9])")
_MOST_BASES = 20
"""Limit for chains of base styles: a broken file may base a style on itself."""
_LEVELS = 9


def is_style_switch_on(value: str) -> bool:
    """Whether a switch's value turns it on."""
    return value not in _OFF


def _style_switch_value(properties: _Element | None, name: str) -> bool | None:
    element = None if properties is None else properties.find(word_xml_name(name))
    return None if element is None else is_style_switch_on(element.get(word_xml_name("w:val"), "1"))


def _style_attribute_value(properties: _Element | None, name: str) -> str | None:
    element = None if properties is None else properties.find(word_xml_name(name))
    return None if element is None else element.get(word_xml_name("w:val"))


class Styles:
    """The styles of a document, including inherited properties."""

    def __init__(self, styles: _Element | None) -> None:
        self._styles: dict[str, _Element] = {}
        self._default: str | None = None
        for style in () if styles is None else styles.iterchildren(word_xml_name("w:style")):
            key = style.get(word_xml_name("w:styleId"), "")
            self._styles[key] = style
            is_default = is_style_switch_on(style.get(word_xml_name("w:default"), "0"))
            if is_default and style.get(word_xml_name("w:type")) == "paragraph":
                self._default = key

    def paragraph_style(self, properties: _Element | None) -> str | None:
        """Return the id of a paragraph's style."""
        return _style_attribute_value(properties, "w:pStyle") or self._default

    def inherited_value(
        self, key: str | None, read_value: Callable[[_Element], StyleValue | None]
    ) -> StyleValue | None:
        """Return a property of the style, or of the first base style that has it."""
        for _ in range(_MOST_BASES):
            style = self._styles.get(key or "")
            if style is None:
                return None
            if (value := read_value(style)) is not None:
                return value
            key = _style_attribute_value(style, "w:basedOn")
        return None

    def starts_a_page(self, properties: _Element | None) -> bool:
        """Whether the paragraph begins a new page."""
        is_switched = _style_switch_value(properties, "w:pageBreakBefore")
        if is_switched is None:
            is_switched = self.inherited_value(
                self.paragraph_style(properties),
                lambda style: _style_switch_value(
                    style.find(word_xml_name("w:pPr")), "w:pageBreakBefore"
                ),
            )
        return bool(is_switched)

    def is_heading(self, properties: _Element | None) -> bool:
        """Whether the paragraph is a heading, by outline level or style name."""
        level = _style_attribute_value(properties, "w:outlineLvl")
        if level is None:
            level = self.inherited_value(self.paragraph_style(properties), _outline_level)
        return level is not None and level.isdigit() and int(level) < _LEVELS

    def omission_reason(self, run: _Element | None, paragraph_style: str | None) -> str:
        """Return why a run is omitted, `struck` or `hidden`; empty if it is shown."""
        for why, names in (("hidden", ("w:vanish",)), ("struck", ("w:strike", "w:dstrike"))):
            if any(self._is_switched(run, name, paragraph_style) for name in names):
                return why
        return ""

    def _is_switched(self, run: _Element | None, name: str, paragraph_style: str | None) -> bool:
        is_switched = _style_switch_value(run, name)
        for key in (_style_attribute_value(run, "w:rStyle"), paragraph_style):
            if is_switched is None and key:
                is_switched = self.inherited_value(
                    key, lambda style: _style_switch_value(style.find(word_xml_name("w:rPr")), name)
                )
        return bool(is_switched)


def _outline_level(style: _Element) -> str | None:
    level = _style_attribute_value(style.find(word_xml_name("w:pPr")), "w:outlineLvl")
    name = _style_attribute_value(style, "w:name") or ""
    return level if level is not None else ("0" if _HEADING.match(name) else None)


@dataclass
class _ListLevel:
    start: int = 1
    kind: str = "decimal"
    text: str = ""
    gap: str = " "
    legal: bool = False
    restarts_after: int | None = None


@dataclass
class _NumberedList:
    levels: dict[int, _ListLevel] = field(default_factory=dict)
    styled: dict[str, int] = field(default_factory=dict)
    """List levels by paragraph style."""
    counts: dict[int, int] = field(default_factory=dict)


class WordListNumbering:
    """The lists of a document, counted in the order of paragraphs."""

    def __init__(self, numbering: _Element | None, styles: Styles) -> None:
        self._styles = styles
        self._lists: dict[str, _NumberedList] = {}
        self._used: set[tuple[str, int]] = set()
        self._starts: dict[tuple[str, int], int] = {}
        self._abstract: dict[str, str] = {}
        if numbering is None:
            return
        for abstract in numbering.iterchildren(word_xml_name("w:abstractNum")):
            self._lists[abstract.get(word_xml_name("w:abstractNumId"), "")] = _read_list_style(
                abstract
            )
        for num in numbering.iterchildren(word_xml_name("w:num")):
            key = num.get(word_xml_name("w:numId"), "")
            self._abstract[key] = _style_attribute_value(num, "w:abstractNumId") or ""
            for override in num.iterchildren(word_xml_name("w:lvlOverride")):
                level = _parse_style_number(override.get(word_xml_name("w:ilvl")), 0)
                start = _style_attribute_value(override, "w:startOverride")
                if start is not None:
                    self._starts[key, level] = _parse_style_number(start, 1)

    def next_number(self, properties: _Element | None) -> str:
        """Return a paragraph's number or bullet with its trailing space; empty if none."""
        key, level = self._list_level(properties)
        numbered_list = self._lists.get(self._abstract.get(key, ""))
        if numbered_list is None or level not in numbered_list.levels:
            return ""
        self._count_item(key, level, numbered_list)
        shown = numbered_list.levels[level]
        if shown.kind == "bullet":
            return "\u2022 "
        if shown.kind == "none":
            return ""

        def level_number(place: re.Match[str]) -> str:
            other = int(place[1]) - 1
            other_level = numbered_list.levels.get(other, _ListLevel())
            count = numbered_list.counts.get(other, other_level.start)
            return format_list_number(count, "decimal" if shown.legal else other_level.kind)

        text = _PLACE.sub(level_number, shown.text)
        return f"{text}{shown.gap}" if text.strip() else ""

    def _list_level(self, properties: _Element | None) -> tuple[str, int]:
        """Return the paragraph's list and level, by its own properties or by its style."""
        numbering = None if properties is None else properties.find(word_xml_name("w:numPr"))
        style = self._styles.paragraph_style(properties)
        key = _style_attribute_value(numbering, "w:numId")
        level = _style_attribute_value(numbering, "w:ilvl")
        if key is None:
            inherited = self._styles.inherited_value(style, _style_numbering)
            key = _style_attribute_value(inherited, "w:numId")
            level = level if level is not None else _style_attribute_value(inherited, "w:ilvl")
        if key is None or key == "0":
            return "", 0
        if level is None and style:
            styled = self._lists.get(self._abstract.get(key, ""), _NumberedList()).styled
            return key, styled.get(style, 0)
        return key, _parse_style_number(level, 0)

    def _count_item(self, key: str, level: int, numbered_list: _NumberedList) -> None:
        counts = numbered_list.counts
        start = self._starts.get((key, level))
        if start is not None and (key, level) not in self._used:
            counts[level] = start
        elif level in counts:
            counts[level] += 1
        else:
            counts[level] = numbered_list.levels[level].start
        self._used.add((key, level))
        for deeper in [other for other in counts if other > level]:
            after = numbered_list.levels.get(deeper, _ListLevel()).restarts_after
            if after is None or level < after:
                del counts[deeper]


def _style_numbering(style: _Element) -> _Element | None:
    properties = style.find(word_xml_name("w:pPr"))
    return None if properties is None else properties.find(word_xml_name("w:numPr"))


def _read_list_style(abstract: _Element) -> _NumberedList:
    numbered_list = _NumberedList()
    for entry in abstract.iterchildren(word_xml_name("w:lvl")):
        number = _parse_style_number(entry.get(word_xml_name("w:ilvl")), 0)
        gap = _style_attribute_value(entry, "w:suff")
        restart = _style_attribute_value(entry, "w:lvlRestart")
        numbered_list.levels[number] = _ListLevel(
            start=_parse_style_number(_style_attribute_value(entry, "w:start"), 1),
            kind=_style_attribute_value(entry, "w:numFmt") or "decimal",
            text=_style_attribute_value(entry, "w:lvlText") or "",
            gap="" if gap == "nothing" else " ",
            legal=bool(_style_switch_value(entry, "w:isLgl")),
            restarts_after=None if restart is None else _parse_style_number(restart, 0),
        )
        if style := _style_attribute_value(entry, "w:pStyle"):
            numbered_list.styled[style] = number
    return numbered_list


def _parse_style_number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise

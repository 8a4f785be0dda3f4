"""Numbers of Word's list items, by their numbering definitions and styles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lxml.etree import _Element

from activities.documents.numbering import format_list_number
from activities.documents.word_package import word_xml_name
from activities.documents.word_styles import Styles, style_attribute_value, style_switch_value

_PLACE = re.compile(r"%([1-9])")


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
            self._abstract[key] = style_attribute_value(num, "w:abstractNumId") or ""
            for override in num.iterchildren(word_xml_name("w:lvlOverride")):
                level = _parse_list_number(override.get(word_xml_name("w:ilvl")), 0)
                start = style_attribute_value(override, "w:startOverride")
                if start is not None:
                    self._starts[key, level] = _parse_list_number(start, 1)

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
        key = style_attribute_value(numbering, "w:numId")
        level = style_attribute_value(numbering, "w:ilvl")
        if key is None:
            inherited = self._styles.inherited_value(style, _style_numbering)
            key = style_attribute_value(inherited, "w:numId")
            level = level if level is not None else style_attribute_value(inherited, "w:ilvl")
        if key is None or key == "0":
            return "", 0
        if level is None and style:
            styled = self._lists.get(self._abstract.get(key, ""), _NumberedList()).styled
            return key, styled.get(style, 0)
        return key, _parse_list_number(level, 0)

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
        number = _parse_list_number(entry.get(word_xml_name("w:ilvl")), 0)
        gap = style_attribute_value(entry, "w:suff")
        restart = style_attribute_value(entry, "w:lvlRestart")
        numbered_list.levels[number] = _ListLevel(
            start=_parse_list_number(style_attribute_value(entry, "w:start"), 1),
            kind=style_attribute_value(entry, "w:numFmt") or "decimal",
            text=style_attribute_value(entry, "w:lvlText") or "",
            gap="" if gap == "nothing" else " ",
            legal=bool(style_switch_value(entry, "w:isLgl")),
            restarts_after=None if restart is None else _parse_list_number(restart, 0),
        )
        if style := style_attribute_value(entry, "w:pStyle"):
            numbered_list.styled[style] = number
    return numbered_list


def _parse_list_number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise

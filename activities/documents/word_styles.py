"""What styles determine for a paragraph: page breaks, headings, omission."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from lxml.etree import _Element

from activities.documents.word_package import word_xml_name

StyleValue = TypeVar("StyleValue")

_OFF = {"0", "false", "off", "none"}
_HEADING = re.compile(r"(?:heading|title|überschrift|titel)\b", re.IGNORECASE)
_MOST_BASES = 20
"""Limit for chains of base styles: a broken file may base a style on itself."""
_LEVELS = 9


def is_style_switch_on(value: str) -> bool:
    """Whether a switch's value turns it on."""
    return value not in _OFF


def style_switch_value(properties: _Element | None, name: str) -> bool | None:
    """Return whether a switch is on; None if it is not set."""
    element = None if properties is None else properties.find(word_xml_name(name))
    return None if element is None else is_style_switch_on(element.get(word_xml_name("w:val"), "1"))


def style_attribute_value(properties: _Element | None, name: str) -> str | None:
    """Return the value of a property; None if it is not set."""
    element = None if properties is None else properties.find(word_xml_name(name))
    return None if element is None else element.get(word_xml_name("w:val"))


_NEAR_WHITE = re.compile(r"F[A-F]F[A-F]F[A-F]")
_LEAST_HALF_POINTS = 4


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
        return style_attribute_value(properties, "w:pStyle") or self._default

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
            key = style_attribute_value(style, "w:basedOn")
        return None

    def starts_a_page(self, properties: _Element | None) -> bool:
        """Whether the paragraph begins a new page."""
        is_switched = style_switch_value(properties, "w:pageBreakBefore")
        if is_switched is None:
            is_switched = self.inherited_value(
                self.paragraph_style(properties),
                lambda style: style_switch_value(
                    style.find(word_xml_name("w:pPr")), "w:pageBreakBefore"
                ),
            )
        return bool(is_switched)

    def is_heading(self, properties: _Element | None) -> bool:
        """Whether the paragraph is a heading, by outline level or style name."""
        level = style_attribute_value(properties, "w:outlineLvl")
        if level is None:
            level = self.inherited_value(self.paragraph_style(properties), _outline_level)
        return level is not None and level.isdigit() and int(level) < _LEVELS

    def omission_reason(self, run: _Element | None, paragraph_style: str | None) -> str:
        """Return why a run is omitted, `struck` or `hidden`; empty if it is shown."""
        for why, names in (("hidden", ("w:vanish",)), ("struck", ("w:strike", "w:dstrike"))):
            if any(self._is_switched(run, name, paragraph_style) for name in names):
                return why
        return "hidden" if _is_unreadable_run(run) else ""

    def _is_switched(self, run: _Element | None, name: str, paragraph_style: str | None) -> bool:
        is_switched = style_switch_value(run, name)
        for key in (style_attribute_value(run, "w:rStyle"), paragraph_style):
            if is_switched is None and key:
                is_switched = self.inherited_value(
                    key, lambda style: style_switch_value(style.find(word_xml_name("w:rPr")), name)
                )
        return bool(is_switched)


def _is_unreadable_run(run: _Element | None) -> bool:
    """Whether a run itself is white on no ground of its own, or smaller than two points."""
    if run is None:
        return False
    size = style_attribute_value(run, "w:sz")
    if size is not None and size.isdigit() and int(size) < _LEAST_HALF_POINTS:
        return True
    colour = (style_attribute_value(run, "w:color") or "").upper()
    element = run.find(word_xml_name("w:color"))
    theme = element.get(word_xml_name("w:themeColor")) if element is not None else None
    if not (_NEAR_WHITE.fullmatch(colour) or theme in ("background1", "light1")):
        return False
    # On a dark paragraph, cell or page it can be read.
    return not any(
        next(above.iter(word_xml_name("w:shd"), word_xml_name("w:highlight")), None) is not None
        for above in (run, *_grounds_of(run))
    )


def _grounds_of(run: _Element) -> list[_Element]:
    """Return the properties of what a run is in that may colour its ground."""
    names = {word_xml_name(name) for name in ("w:pPr", "w:tcPr", "w:tblPr")}
    return [
        child
        for above in run.iterancestors()
        for child in above
        if child.tag in names or child.tag == word_xml_name("w:background")
    ]


def _outline_level(style: _Element) -> str | None:
    level = style_attribute_value(style.find(word_xml_name("w:pPr")), "w:outlineLvl")
    name = style_attribute_value(style, "w:name") or ""
    return level if level is not None else ("0" if _HEADING.match(name) else None)

"""What styles, lists and fonts make of a paragraph: breaks, headings, omissions, marks."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lxml.etree import _Element

from activities.documents.word_package import qn

StyleValue = TypeVar("StyleValue")

_OFF = {"0", "false", "off", "none"}
_HEADING = re.compile(r"(?:heading|title|überschrift|titel)\b", re.IGNORECASE)
_MOST_BASES = 20
"""Limit for chains of base styles: a broken file may base a style on itself."""
_LEVELS = 9


def is_style_switch_on(value: str) -> bool:
    return value not in _OFF


def style_switch_value(properties: _Element | None, name: str) -> bool | None:
    """Return whether a switch is on; None if it is not set."""
    element = None if properties is None else properties.find(qn(name))
    return None if element is None else is_style_switch_on(element.get(qn("w:val"), "1"))


def style_attribute_value(properties: _Element | None, name: str) -> str | None:
    """Return the value of a property; None if it is not set."""
    element = None if properties is None else properties.find(qn(name))
    return None if element is None else element.get(qn("w:val"))


_NEAR_WHITE = re.compile(r"F[A-F]F[A-F]F[A-F]")
_LEAST_HALF_POINTS = 4


class Styles:
    """The styles of a document, including inherited properties."""

    def __init__(self, styles: _Element | None) -> None:
        self._styles: dict[str, _Element] = {}
        self._default: str | None = None
        for style in () if styles is None else styles.iterchildren(qn("w:style")):
            key = style.get(qn("w:styleId"), "")
            self._styles[key] = style
            is_default = is_style_switch_on(style.get(qn("w:default"), "0"))
            if is_default and style.get(qn("w:type")) == "paragraph":
                self._default = key

    def paragraph_style(self, properties: _Element | None) -> str | None:
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
        is_switched = style_switch_value(properties, "w:pageBreakBefore")
        if is_switched is None:
            is_switched = self.inherited_value(
                self.paragraph_style(properties),
                lambda style: style_switch_value(style.find(qn("w:pPr")), "w:pageBreakBefore"),
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
                    key, lambda style: style_switch_value(style.find(qn("w:rPr")), name)
                )
        return bool(is_switched)


def _is_unreadable_run(run: _Element | None) -> bool:
    """Whether a run itself is white on no background of its own, or smaller than two points."""
    if run is None:
        return False
    size = style_attribute_value(run, "w:sz")
    if size is not None and size.isdigit() and int(size) < _LEAST_HALF_POINTS:
        return True
    colour = (style_attribute_value(run, "w:color") or "").upper()
    element = run.find(qn("w:color"))
    theme = element.get(qn("w:themeColor")) if element is not None else None
    if not (_NEAR_WHITE.fullmatch(colour) or theme in ("background1", "light1")):
        return False
    # On a dark paragraph, cell or page it can be read.
    return not any(
        next(above.iter(qn("w:shd"), qn("w:highlight")), None) is not None
        for above in (run, *_background_properties(run))
    )


def _background_properties(run: _Element) -> list[_Element]:
    """Return the properties of what a run is in that may colour its background."""
    names = {qn(name) for name in ("w:pPr", "w:tcPr", "w:tblPr")}
    return [
        child
        for above in run.iterancestors()
        for child in above
        if child.tag in names or child.tag == qn("w:background")
    ]


def _outline_level(style: _Element) -> str | None:
    level = style_attribute_value(style.find(qn("w:pPr")), "w:outlineLvl")
    name = style_attribute_value(style, "w:name") or ""
    return level if level is not None else ("0" if _HEADING.match(name) else None)


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
        for abstract in numbering.iterchildren(qn("w:abstractNum")):
            self._lists[abstract.get(qn("w:abstractNumId"), "")] = _read_list_style(abstract)
        for num in numbering.iterchildren(qn("w:num")):
            key = num.get(qn("w:numId"), "")
            self._abstract[key] = style_attribute_value(num, "w:abstractNumId") or ""
            for override in num.iterchildren(qn("w:lvlOverride")):
                level = _parse_list_number(override.get(qn("w:ilvl")), 0)
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
        numbering = None if properties is None else properties.find(qn("w:numPr"))
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
    properties = style.find(qn("w:pPr"))
    return None if properties is None else properties.find(qn("w:numPr"))


def _read_list_style(abstract: _Element) -> _NumberedList:
    numbered_list = _NumberedList()
    for entry in abstract.iterchildren(qn("w:lvl")):
        number = _parse_list_number(entry.get(qn("w:ilvl")), 0)
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


# ruff: noqa: RUF001 - these letters are meant

# The encoding of the font Symbol from 0x21 and from 0xA0; a space where it has no glyph.
_LOW = (
    "!∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
)
_HIGH = (
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉"
    "∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
)
_SYMBOL = {
    **{0x21 + place: letter for place, letter in enumerate(_LOW)},
    **{0xA0 + place: letter for place, letter in enumerate(_HIGH)},
}
_WINGDINGS = dict(
    zip(
        bytes.fromhex("6c 6e 6f 71 76 78 9f a7 a8 d8 df e0 e1 e2 e8 f0 fb fc fd fe"),
        "●■☐❑❖☒•▪☐➢←→↑↓➔⇨✗✓☒☑",
        strict=True,
    )
)
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}
_PRIVATE = 0xF000
"""The range where Office writes the letters of such fonts."""


def symbols_as_unicode(text: str, font: str) -> str:
    """Return the text as the font shows it; unchanged for other fonts."""
    table = _FONTS.get(font.lower())
    if table is None or not text:
        return text
    codes = [ord(letter) for letter in text]
    letters = (code - _PRIVATE if code >= _PRIVATE else code for code in codes)
    return "".join(table.get(code, chr(code)) for code in letters)


def word_symbol_font(text: _Element) -> str:
    fonts = text.getparent().find(f"{qn('w:rPr')}/{qn('w:rFonts')}")
    return "" if fonts is None else fonts.get(qn("w:ascii"), "")


def word_symbol_text(symbol: _Element) -> str:
    code = symbol.get(qn("w:char"), "")
    if not re.fullmatch(r"[0-9A-Fa-f]{1,4}", code):
        return ""
    return symbols_as_unicode(chr(int(code, 16)), symbol.get(qn("w:font"), ""))


_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]  # fmt: skip
_BULLETS = {"bullet", "none"}
_NOTE_NUMBER = re.compile(r"\s*\d{1,3}\s*")
_SENTENCE_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019\u00bb)]? *$")
MAX_FORMATTED_NUMBER = 9999
"""A larger number is shown in digits, whatever the format."""


def format_list_number(number: int, kind: str) -> str:
    """Return a number in one of Word's formats; in digits for an unknown format.

    Args:
        kind: Such as `decimal`, `lowerLetter`, `upperRoman`.
    """
    if kind in _BULLETS:
        return ""
    if not 0 < number <= MAX_FORMATTED_NUMBER:
        return str(number)
    if kind in ("lowerLetter", "upperLetter"):
        # After z comes aa, then bb.
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if kind == "upperLetter" else letters
    if kind in ("lowerRoman", "upperRoman"):
        roman = _roman_numeral(number)
        return roman.upper() if kind == "upperRoman" else roman
    if kind == "decimalZero":
        return f"{number:02d}"
    if kind == "ordinal":
        return f"{number}{_ordinal_suffix(number)}"
    return str(number)


def _roman_numeral(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def _ordinal_suffix(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def is_possible_note_number(text: str) -> bool:
    """Whether the text, such as that of a link, can be a note's number."""
    return bool(_NOTE_NUMBER.fullmatch(text))


def may_note_number_follow(text: str) -> bool:
    """Whether a sentence ends at the end of the text."""
    return bool(_SENTENCE_END.search(text[-10:]))

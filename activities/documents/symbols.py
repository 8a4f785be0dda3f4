"""Convert letters of Office's symbol fonts to the Unicode characters that they show."""

import re

from lxml.etree import _Element

from activities.documents.word_package import word_xml_name

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
_WINGDINGS = {
    0x6C: "●",
    0x6E: "■",
    0x6F: "☐",
    0x71: "❑",
    0x76: "❖",
    0x78: "☒",
    0x9F: "•",
    0xA7: "▪",
    0xA8: "☐",
    0xD8: "➢",
    0xDF: "←",
    0xE0: "→",
    0xE1: "↑",
    0xE2: "↓",
    0xE8: "➔",
    0xF0: "⇨",
    0xFB: "✗",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
}
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
    fonts = text.getparent().find(f"{word_xml_name('w:rPr')}/{word_xml_name('w:rFonts')}")
    return "" if fonts is None else fonts.get(word_xml_name("w:ascii"), "")


def word_symbol_text(symbol: _Element) -> str:
    code = symbol.get(word_xml_name("w:char"), "")
    if not re.fullmatch(r"[0-9A-Fa-f]{1,4}", code):
        return ""
    return symbols_as_unicode(chr(int(code, 16)), symbol.get(word_xml_name("w:font"), ""))

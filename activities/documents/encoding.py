"""Decode bytes to text: by byte order mark, by declaration, or by a guess that is named as one.

Labels are read as browsers read them (the WHATWG Encoding Standard). Undeclared content is UTF-8 if
it decodes as such; otherwise Firefox's detector decides.
"""

import re

from activities.text.safe_text import replace_surrogates

CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HTML_DECLARED = re.compile(
    rb"""<(?:\?xml|meta)\b[^>]{0,300}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""",
    re.IGNORECASE | re.ASCII,
)
_XML_DECLARED = re.compile(
    rb"""(?:\xef\xbb\xbf)?<\?xml\b[^>]{0,300}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']""", re.ASCII
)
# Browsers read more characters under these labels than Python's codecs of the same name.
_CODECS = {
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "x-user-defined": "cp1252",
}
_DECLARATION_BYTES = 4096
"""A declaration is searched for in this many bytes."""
_DETECTION_BYTES = 1_000_000
"""The detector reads this many bytes."""


def decode_text(data: bytes) -> tuple[str, str]:
    """Return the text, and the encoding if it was guessed."""
    return _decode_bytes(data, _XML_DECLARED.match(data[:_DECLARATION_BYTES]))


def decode_by_html_declaration(data: bytes) -> tuple[str, str]:
    """Like `decode_text` for HTML: old pages declare an encoding, newer ones are UTF-8."""
    return _decode_bytes(data, _HTML_DECLARED.search(data[:_DECLARATION_BYTES]))


def _decode_bytes(data: bytes, declared: re.Match[bytes] | None = None) -> tuple[str, str]:
    if encoding := utf16_encoding(data):
        return data.decode(encoding, errors="replace"), ""
    if is_utf8(data):
        return data.decode("utf-8-sig"), ""
    label = declared[1].decode("ascii") if declared else ""
    # Readable ASCII here is not UTF-16, whatever the declaration says.
    if label and not label.lower().startswith("utf-16") and (known := _python_codec(label)):
        return replace_surrogates(data.decode(known, errors="replace")), ""
    # A file cut within a character, or with one bad byte, still counts as UTF-8. In another
    # encoding hardly any character would decode.
    text = data.decode("utf-8-sig", errors="replace")
    broken = text.count("\ufffd")
    if sum(not letter.isascii() for letter in text) - broken > broken:
        return text, ""
    import chardetng_py  # noqa: PLC0415

    guess = chardetng_py.detect(data[:_DETECTION_BYTES]).lower()
    known = _python_codec(guess) or "cp1252"
    return replace_surrogates(data.decode(known, errors="replace")), guess


def decode_by_encoding_label(data: bytes, label: str) -> str:
    """Decode by the label; by a guess if the label is unknown."""
    if known := _python_codec(label):
        return replace_surrogates(data.decode(known, errors="replace"))
    return _decode_bytes(data)[0]


def _python_codec(label: str) -> str | None:
    """Return Python's codec for a label, or None if browsers do not know the label."""
    import webencodings  # noqa: PLC0415

    encoding = webencodings.lookup(label)
    return None if encoding is None else _CODECS.get(encoding.name, encoding.codec_info.name)


def utf16_encoding(data: bytes) -> str:
    """Return the encoding of text with two bytes per character; empty for any other text.

    Without a byte order mark it is recognized by its zero bytes: each simple character has one,
    always on the same side.
    """
    if data.startswith(_UTF16):
        return "utf-16"
    head = data[:8192]
    zeros = [head[side::2].count(0) for side in (0, 1)]
    if 10 * max(zeros) < len(head) // 2 or 10 * min(zeros) > max(zeros) or len(head) % 2:
        return ""
    encoding = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    # Two-byte integers have such zeros too, but are no letters.
    text = head.decode(encoding, errors="replace").encode("utf-8", errors="replace")
    return "" if text.translate(None, CONTROL) != text else encoding


def is_utf8(data: bytes) -> bool:
    """Whether this is UTF-8 text, and nothing that merely decodes as it.

    Japanese in ISO-2022-JP is ASCII with escapes, and English in UTF-16 is ASCII with zeros.
    """
    if data.isascii():
        return b"\x1b" not in data and b"\0" not in data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

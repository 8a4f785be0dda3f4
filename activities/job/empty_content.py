"""Whether a file says anything: one that is only white space, or an empty form, does not.

An empty list, a header without a row and a lone sign say something: that there is no more.
"""

import io
import re
import unicodedata
import zipfile

from activities.text.statement_words import any_word, statement_words

SAMPLE_BYTES = 1_000_000
"""Part of a file that is looked at first; only if it says nothing, all of it is."""
MAX_MEMBER_BYTES = 1_000_000
"""Part of a member of an archive that is looked at; a longer one says something."""
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that count as letters or symbols and show nothing."""
_EMPTY_PAGE = re.compile(
    r"(?:\s|</?(?:html|head|body)\s*>|<html\s+[^<>\s][^<>]*>|<!doctype\b[^<>]*>|<title>[^<]*</title>"
    r"|<meta\s+(?:charset|name)\b[^<>]*>)+",
    re.IGNORECASE,
)
_TEXT_NODE = re.compile(rb">\s*[^<\s]|<\w+:(?:drawing|pict|object)\b")
_RECORDS = frozenset(["jsonl", "ndjson", "log", "diff", "patch"])
"""Formats in which no record at all is an empty file."""
_OFFICE_PARTS = re.compile(
    r"word/(?:document|header|footer|footnotes|comments)\d*\.xml"
    r"|xl/(?:sharedStrings|worksheets/[^/]+)\.xml|ppt/slides/[^/]+\.xml|content\.xml"
)
_OFFICE_PICTURES = re.compile(
    r"(?:word|xl|ppt)/(?:media|charts|drawings|diagrams|embeddings)/.|Pictures/.|Object "
)
_LEFT_EMPTY = re.compile(
    r"(?:\b(?:not|never|nicht|nie)\b.{0,12}\b)?\b(?P<empty>leer|zero[- ]bytes?"
    r"|(?:empty|blank|leere[nrs]?)"
    r"(?!\s+(?:line|row|cell|(?!files\b|dateien\b)\w+(?:s|en)\b)))\b",
    re.IGNORECASE,
)
"""Lets a file be empty; "empty lines", "must not be empty" and the like do not."""
_PLACEHOLDER = re.compile(
    r"\.{3}|\u2026|[-.\u2026\s]*(?:todo|to do|tbd|tba|tbc|fixme|xxx|placeholder|lorem ipsum\b.*"
    r"|to be (?:done|written|added|determined)|platzhalter|coming soon)[-.\u2026\s]*",
    re.IGNORECASE,
)
_OF_FORM = any_word(
    r"templates?|skeletons?|outlines?|scaffold\w*|stubs?|placeholders?|to-?dos?|tbd|fixmes?|lorem"
    r"|dummy|mock-?ups?|\w*vorlagen?|\w*gerüst|gliederung|platzhalter"
)
"""Asks for a file in which little has to stand."""


def empty_content_reason(path: str, content: bytes, brief: str = "") -> str | None:
    """Return why a file says nothing, as the end of a sentence about it; None if it does.

    Args:
        brief: What was asked for; it may let files be empty, or hold placeholders.
    """
    name = path.rpartition("/")[2].lower()
    ending = name.rpartition(".")[2]
    is_free = _may_be_empty(brief)
    if content.startswith(b"PK"):
        return None if is_free or _OF_FORM.search(brief) else _empty_archive_reason(content)
    if not (_is_visible(content[:SAMPLE_BYTES]) or _is_visible(content)):
        # By their name alone ".gitkeep", "__init__.py" and "py.typed" say what they are for.
        is_mark = name.startswith((".", "__")) or ending in _RECORDS
        known = "." not in name or ending in statement_words().endings
        return "is empty" if known and not (is_mark or is_free) else None
    if len(content) > SAMPLE_BYTES or is_free or _OF_FORM.search(brief):
        return None
    text = content.decode("utf-8-sig", errors="replace")
    if ending in ("html", "htm") and _EMPTY_PAGE.fullmatch(text):
        return "is an empty web page"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    filled = [line for line in lines if line[0] != "#"] or [line.lstrip("# ") for line in lines]
    if filled and all(_is_placeholder(line) and line not in brief for line in filled):
        return f"holds nothing but placeholders, such as {filled[0][:40]!r}"
    return None


def _may_be_empty(brief: str) -> bool:
    found = _LEFT_EMPTY.finditer(brief)
    return any(each.start() == each.start("empty") for each in found)


def _is_placeholder(line: str) -> bool:
    bare = line.strip(" \t:!*_+[]()<>")
    return _PLACEHOLDER.fullmatch(bare) is not None


def _is_visible(content: bytes) -> bool:
    """Return whether some character can be seen; all binaries can but those of zeros."""
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = content.decode("utf-16", errors="replace")
        else:
            text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return bool(content.strip(b"\0 \t\r\n"))
        text = content[: error.start].decode()
    return any(
        unicodedata.category(char)[0] in "LNPS" for char in text if char not in _BLANK_LETTERS
    )


def _empty_archive_reason(content: bytes) -> str | None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [each for each in archive.infolist() if not each.is_dir() and each.file_size]
            if not members:
                return "is an archive without content"
            parts = [each for each in members if _OFFICE_PARTS.fullmatch(each.filename)]
            if not parts or any(_OFFICE_PICTURES.match(each.filename) for each in members):
                return None
            for part in parts:
                if part.file_size > MAX_MEMBER_BYTES:
                    return None
                with archive.open(part) as member:
                    if _TEXT_NODE.search(member.read(MAX_MEMBER_BYTES)):
                        return None
            return "is a document without any text"
    # A damaged member, an encrypted one, or an unknown compression: nothing is known of it.
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError, ValueError):
        return None

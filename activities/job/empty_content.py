"""Whether a file says anything: one that is only white space, or an empty form, does not."""

import csv
import io
import re
import unicodedata
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from activities.text.json_values import read_json_value

SAMPLE_BYTES = 1_000_000
"""Part of a file that is looked at first; only if it says nothing, all of it is."""
MAX_MEMBER_BYTES = 1_000_000
"""Part of a member of an archive that is looked at; a longer one says something."""
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that count as letters or symbols and show nothing."""
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<head\b(?:(?!<head\b).)*?</head\s*>|<style\b.*?(?:</style\s*>|\Z)"
    r"|<!?/?[A-Za-z][^<>]*>",
    re.DOTALL | re.I,
)
"""What is not shown. What is not closed ends where a browser ends it, and costs no second look."""
_SHOWN_TAGS = re.compile(
    r"<(?:img|svg|canvas|script|iframe|video|audio|object|embed|input)\b", re.I
)
_OFFICE_TEXT = re.compile(rb"<(?:\w+:)?(?:t|v|p|h|span)(?:\s[^<>]*)?>[^<]*[^<\s][^<]*<")
_OFFICE_PARTS = re.compile(
    r"word/(?:document\d*|footnotes)\.xml|xl/(?:sharedStrings|worksheets/[^/]+)\.xml"
    r"|ppt/slides/[^/]+\.xml|content\.xml"
)
_OFFICE_PICTURES = re.compile(r"(?:word|xl|ppt)/(?:media|charts|embeddings)/.|Pictures/.")
_YAML_NOTHING = frozenset(["", "---", "...", "{}", "[]", "null", "~", '""', "''"])


def empty_content_reason(path: str, content: bytes) -> str | None:
    """Return why a file says nothing, as the end of a sentence about it; None if it does."""
    if not content:
        return "is empty"
    if not (_is_visible(content[:SAMPLE_BYTES]) or _is_visible(content)):
        return "says nothing: it has no letter and no digit that can be seen"
    ending = path.lower().rpartition(".")[2]
    if content.startswith(b"PK"):
        return _empty_archive_reason(content)
    check = _CHECKS.get(ending)
    if check is None or len(content) > SAMPLE_BYTES:
        return None
    return check(content.decode("utf-8-sig", errors="replace"))


def _is_visible(content: bytes) -> bool:
    """Return whether some character can be seen and is no mere punctuation; all binaries can."""
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
        char.isalnum() or unicodedata.category(char) == "So"
        for char in text
        if char not in _BLANK_LETTERS
    )


def _empty_json_reason(text: str) -> str | None:
    with suppress(ValueError):
        if not _says_something(read_json_value(text)):
            return "is an empty JSON document"
    return None


def _empty_lines_reason(text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    with suppress(ValueError):
        if not any(_says_something(read_json_value(line)) for line in lines):
            return "holds nothing but empty JSON values"
    return None


def _says_something(value: Any) -> bool:
    """Return whether a JSON value has a number, a text or a named key."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if any(key.strip() for key in each):
                return True
            pending += each.values()
        elif isinstance(each, list):
            pending += each
        elif isinstance(each, str):
            if _is_visible(each.encode(errors="replace")):
                return True
        elif each is not None:
            return True
    return False


def _empty_yaml_reason(text: str) -> str | None:
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in text.splitlines())
    return "is an empty YAML document" if all(line in _YAML_NOTHING for line in lines) else None


def _empty_table_reason(text: str) -> str | None:
    """Return that a table has nothing but its header: one row of names without a number."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1 or re.search(r"\d", lines[0]):
        return None
    with suppress(csv.Error):
        separator = next((mark for mark in "\t;,|" if mark in lines[0]), "")
        if separator and len(next(csv.reader(lines, delimiter=separator))) > 1:
            return (
                "is a table of a header without a row; if there is nothing to list, say so in a row"
            )
    return None


def _empty_page_reason(text: str) -> str | None:
    if _SHOWN_TAGS.search(text) or _is_visible(_MARKUP.sub(" ", text).encode(errors="replace")):
        return None
    return "is an empty web page"


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
                    if _OFFICE_TEXT.search(member.read(MAX_MEMBER_BYTES)):
                        return None
            return "is a document without any text"
    # A damaged member, an encrypted one, or an unknown compression: nothing is known of it.
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError, ValueError):
        return None


_CHECKS: dict[str, Callable[[str], str | None]] = {
    "json": _empty_json_reason,
    "jsonl": _empty_lines_reason,
    "ndjson": _empty_lines_reason,
    "yaml": _empty_yaml_reason,
    "yml": _empty_yaml_reason,
    "csv": _empty_table_reason,
    "tsv": _empty_table_reason,
    "html": _empty_page_reason,
    "htm": _empty_page_reason,
}

"""Counts the words, lines, rows, entries and sections of a text as generously as people may.

People count in several ways: with headings or without, with the header of a table or without. So
there are two numbers, the fewest and the most that anybody may count. Where the form of a file does
not say what its rows or entries are, there are none.
"""

import csv
import io
import json
import re
from typing import Any

import re2

Range = tuple[int, int]
"""The fewest and the most."""

MAX_PARSED = 500_000
"""Characters of a text whose form is looked at."""
_PAGES = ("html", "htm", "xhtml")
_TEXTS = ("md", "markdown", "txt", "text", "rst", "adoc", "")
_LISTS = (*_TEXTS, "yaml", "yml")
_DRAWN = ("pdf", "rtf", "ps", "svg")
"""Formats whose own lines are none of the text that they show."""
_WORD = re.compile(r"\w[\w'\u2019-]*")
_UNSPACED = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff])"
)
"""Letters of scripts that part no words by spaces; people count the letters."""
_BESIDE_BODY = re2.compile(r"(?ms)\A---\n.*?\n---\n|^\s*(?:```|~~~).*?^\s*(?:```|~~~)|<!--.*?-->")
_NO_BODY = re.compile(r"\s*(?:[#|`~]|[=-]+\s*$|([*_]{1,3})\S.*\1\s*$)")
"""Headings, rows of tables, fences, and lines in bold or italics, such as a signature."""
_SHORT_LINE = 60
_AROUND_BODY = 2
"""Short lines before and after a text that may be its title, author, signature or date."""
_BESIDE_ROWS = 2
"""Rows that may be the header and the total."""
_LINE_WIDTH = 20
"""Characters after which a long line may be shown, or meant, as another one."""
_PARTS = re.compile(r"[,;/\u00b7\u2022]|\b(?:and|und)\b")
"""Parts the entries of a line."""
_SKIPPED = re2.compile(
    r"(?is)<!--.*?-->|<head\b.*?</head\s*>|<style\b.*?</style\s*>|<script\b.*?</script\s*>"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ROW_TAG = re.compile(r"<tr\b", re.IGNORECASE)


def count_range(unit: str, path: str, text: str) -> Range | None:
    """Return the fewest and the most that a text may be said to have of a unit, if known."""
    name = path.rpartition("/")[2].lower()
    ending = name.rpartition(".")[2] if "." in name else ""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if len(text) > MAX_PARSED or ending in _DRAWN:
        return None
    if unit == "word":
        return _count_words(ending, text)
    counted: Range | None = None
    if unit == "section":
        counted = (0, _count_sections(text)) if ending in _TEXTS else None
    elif ending in ("csv", "tsv"):
        counted = _count_rows(text)
    elif ending in ("json", "jsonl", "ndjson"):
        counted = _count_values(text)
    elif ending in _PAGES and unit != "entry" and "<script" not in text.lower():
        counted = 0, len(_ROW_TAG.findall(text))
    elif ending in _LISTS and unit != "line":
        is_table = unit == "row" and ending in _TEXTS
        parts = 0 if is_table else len(_PARTS.findall(text))
        lines = len(_filled(text))
        most = lines + parts if lines > 1 else max(1 + parts, len(text.split()))
        counted = 0, max(most, len(_ROW_TAG.findall(text)))
    if unit != "line":
        return counted
    # A German line ("Zeile") is a row as well.
    fewest = len(_body_lines(text))
    most = sum(1 + len(line) // _LINE_WIDTH for line in text.splitlines())
    return (min(fewest, counted[0]), max(most, counted[1])) if counted else (fewest, most)


def repeats(unit: str, text: str) -> bool:
    """Return whether a text is the same word, or the same row below a header, all the way."""
    if unit == "word":
        words = _WORD.findall(text.casefold())
        return len(set(words)) * 20 < min(len(words), 2000)
    lines = _filled(text)
    # Rows without any text are those of a form that people fill in.
    same = len(lines) > 4 and len(set(lines[1:])) == 1
    return unit == "row" and same and _WORD.search(lines[1]) is not None


def _filled(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _body_lines(text: str) -> list[str]:
    """Return the lines that anybody counts."""
    lines = [x for x in _filled(_BESIDE_BODY.sub("", text)) if not _NO_BODY.match(x)]
    return [
        line
        for place, line in enumerate(lines)
        if _AROUND_BODY <= place < len(lines) - _AROUND_BODY or len(line) > _SHORT_LINE
    ]


def _count_words(ending: str, text: str) -> Range | None:
    if ending in _PAGES:
        if "<script" in text.lower():
            return None
        text = _TAG.sub(" ", _SKIPPED.sub(" ", text))
    elif ending not in _TEXTS:
        return None
    fewest = sum(bool(_WORD.search(word)) for word in " ".join(_body_lines(text)).split())
    return fewest, len(_WORD.findall(_UNSPACED.sub(r" \1 ", text)))


def _count_sections(text: str) -> int:
    headings = re.findall(r"(?im)^[ \t]*(?:#|\*\*|__)|<h[1-6]\b", text)
    if len(headings) < 2:
        return len(_filled(text))
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    return max(len(headings), sum(not part.lstrip().startswith("#") for part in parts))


def _count_rows(text: str) -> Range | None:
    sizes = [len(_filled(text))]
    for mark in ",;\t|":
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
        except csv.Error:
            return None
        filled = [row for row in rows if any(cell.strip() for cell in row)]
        sizes.append(sum(not row[0].startswith(("#", "sep=")) for row in filled))
    return max(0, min(sizes) - _BESIDE_ROWS), max(sizes)


def _count_values(text: str) -> Range | None:
    """Count the values of a JSON document level by level; fields of a record are no entries."""
    try:
        level: list[Any] = [json.loads(text, parse_int=str)]
    except RecursionError:
        return None
    except ValueError:
        return len(_filled(text)), len(_filled(text))
    sizes, of_list = [], False
    while level:
        held: list[Any] = []
        for each in level:
            values = list(each.values()) if isinstance(each, dict) else each
            is_record = isinstance(each, dict) and of_list
            held += [x for x in values if not is_record or isinstance(x, dict | list)]
        sizes += [len(held)] if held else []
        of_list = any(isinstance(each, list) for each in level)
        level = [each for each in held if isinstance(each, dict | list)]
    return min(sizes, default=0), max(sizes, default=0)

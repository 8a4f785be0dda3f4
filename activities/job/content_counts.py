"""Counts the words, lines, rows, entries and headings of a text as people count them.

A text can often be counted in several ways: with its headings or without, with the header of a
table or without. Each way is a reading. Where the form of a file is not known there is none, and an
empty reading stands for a form in which there may be fewer.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any

import re2
import yaml
from markdown_it import MarkdownIt

from config.yaml_files import YAML

Reading = list[str]

MAX_PARSED = 500_000
"""Characters of a text whose form is looked at."""
MAX_LEVELS = 100
_PAGES = ("html", "htm", "xhtml")
_TEXTS = ("md", "markdown", "txt", "text", "")
_WORD = re.compile(r"\w[\w'\u2019-]*")
_UNSPACED = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff])"
)
"""Letters of scripts that part no words by spaces; people count the letters."""
_BULLET = re.compile(r"(\s*)(?:[^\w\s#>|<`]{1,2}|\(?(?:\d+|[a-z])[.)])\s+\S")
_SEPARATOR = re.compile(r"^\s*\|?[\s:|-]*-{2,}[\s:|-]*$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_BOLD_LINE = re.compile(r"^\s*(\*\*|__)[^*_].*\1:?\s*$")
_TERM_LINE = re.compile(r"^\s*(?:\*\*|__)?\w[^:]{0,60}?(?::|\s[=\u2013\u2014-]\s)")
_SKIPPED = re2.compile(
    r"(?is)<!--.*?-->|<head\b.*?</head\s*>|<style\b.*?</style\s*>|<script\b.*?</script\s*>"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def count_readings(unit: str, path: str, text: str) -> list[Reading]:
    """Return what a text has of a unit, as it may be counted; nothing if that is not known."""
    ending = path.rpartition("/")[2].lower().rpartition(".")[2] if "." in path else ""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if unit == "word":
        return _read_words(ending, text)
    if unit == "line":
        return _read_lines(text)
    if unit == "line or row":
        return [*_read_lines(text), *count_readings("row", path, text)]
    if len(text) > MAX_PARSED:
        return []
    if ending in _PAGES:
        return _read_page(unit, text)
    if ending in _TEXTS:
        readings = _read_markdown(unit, text)
        if ending in ("md", "markdown") or (unit == "section" and "#" in text):
            return readings
        return [*readings, _filled(text), []] if unit != "section" else []
    if unit in ("row", "entry"):
        if ending in ("csv", "tsv"):
            return _read_table(text)
        if ending in ("jsonl", "ndjson"):
            return [_filled(text)]
        if ending == "json":
            return _read_json(text)
        if ending in ("yaml", "yml"):
            return _read_yaml(text)
    return []


def _filled(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _read_words(ending: str, text: str) -> list[Reading]:
    if ending in _PAGES:
        text = _TAG.sub(" ", _SKIPPED.sub(" ", text))
    body = "\n".join(line for line in text.splitlines() if not re.match(r"#{1,6}\s+\S", line))
    readings = [_WORD.findall(text), _WORD.findall(body), body.split()]
    spaced = _UNSPACED.sub(r" \1 ", text)
    if spaced != text:
        readings.append(_WORD.findall(spaced))
    return readings if ending in (*_TEXTS, *_PAGES) else [*readings, []]


def _read_lines(text: str) -> list[Reading]:
    filled = [line for line in _filled(text) if not _FENCE.match(line)]
    titles = ("#", "*", "_")
    readings = [filled, text.splitlines(), [x for x in filled if not x.startswith(titles)]]
    # A title or a signature without any mark stands alone.
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text.strip())]
    if len(blocks) > 1:
        readings += [filled[:-1]] if len(blocks[-1]) == 1 else []
        readings += [filled[1:]] if len(blocks[0]) == 1 else []
        readings += [filled[1:-1]] if len(blocks[0]) == len(blocks[-1]) == 1 else []
    return readings


def _read_table(text: str) -> list[Reading]:
    readings: list[Reading] = []
    for mark in ",;\t|":
        try:
            rows = [
                " ".join("\t".join(row).split()).casefold()
                for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark)
                if any(cell.strip() for cell in row)
            ]
        except csv.Error:
            return []
        said = [row for row in rows if not row.startswith(("#", "sep="))]
        readings += [rows, rows[1:], said, said[1:]]
    return readings


def _read_json(text: str) -> list[Reading]:
    """Return the values of a JSON document, level by level."""
    try:
        level: list[Any] = [json.loads(text, parse_int=str)]
    except (ValueError, RecursionError):
        return []
    sizes = []
    while level:
        items = [each for container in level for each in _children(container)]
        sizes.append(len(items))
        level = [each for each in items if isinstance(each, dict | list)]
    return _levels(sizes)


def _read_yaml(text: str) -> list[Reading]:
    """Return the values of YAML documents, level by level; their tags need not be known."""
    sizes, kinds = Counter[int](), list[str]()
    try:
        # Events, since a parser of whole documents calls itself for each level.
        for event in yaml.parse(text, YAML):
            if isinstance(event, yaml.CollectionEndEvent):
                kinds.pop()
            elif isinstance(event, yaml.NodeEvent):
                sizes[len(kinds)] += 1 if kinds[-1:] == ["map"] else 2
            if len(kinds) > MAX_LEVELS:
                return []
            if isinstance(event, yaml.CollectionStartEvent):
                kinds.append("map" if isinstance(event, yaml.MappingStartEvent) else "list")
    except (ValueError, yaml.YAMLError):
        return []
    documents = sizes.pop(0, 0) // 2
    levels = [sizes[level] // 2 for level in sorted(sizes)]
    return _levels([documents, *levels] if documents > 1 else levels)


def _levels(sizes: list[int]) -> list[Reading]:
    filled = [size for size in sizes if size] or [0]
    return [[str(place) for place in range(size)] for size in filled]


def _children(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return container.values()
    return container if isinstance(container, list) else ()


def _read_page(unit: str, text: str) -> list[Reading]:
    """Return the elements of a web page; one that a script fills may have any number."""
    shown = _SKIPPED.sub(" ", text)
    tags = [tag.lower() for tag in re.findall(r"<([A-Za-z][A-Za-z0-9]*)\b", shown)]
    if "<script" in text.lower():
        return []
    headings = [tag for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    levels = [[tag for tag in headings if tag == level] for level in sorted(set(headings))]
    items, rows = ([tag for tag in tags if tag == name] for name in ("li", "tr"))
    found = {
        "row": [rows, rows[tags.count("table") :]],
        "bullet": [items],
        "section": [headings, headings[1:], *levels, [tag for tag in tags if tag == "section"]],
        "entry": [items, rows, *levels, *([tag for tag in tags if tag == n] for n in ("dt", "p"))],
    }[unit]
    found = [[str(place) for place, _ in enumerate(tags)] for tags in found if tags]
    several = unit == "row" and tags.count("table") > 1
    return [*found, []] if several and found else found


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").disable("inline")


def _read_markdown(unit: str, text: str) -> list[Reading]:
    text = _FRONT_MATTER.sub("", text)
    if unit == "bullet":
        marks = [mark for line in _filled(text) if (mark := _BULLET.match(line))]
        top = [mark[0] for mark in marks if not mark[1]]
        return [[mark[0] for mark in marks], *([top] if top else []), *_read_page(unit, text)]
    page = _MarkdownPage(text)
    if unit == "row":
        return page.rows(text)
    levels = [
        [title for level, title in page.headings if level == each]
        for each in sorted({level for level, _ in page.headings})
    ]
    titles = [title for _, title in page.headings]
    bold = [line for line in _filled(text) if _BOLD_LINE.match(line)]
    if unit == "section":
        short = [each for each in page.paragraphs if "\n" not in each and len(each) < 80]
        others = [bold, [] if titles or bold else short, *_read_page(unit, text)]
        return [titles, titles[1:], *levels, *(each for each in others if each)]
    terms = [line for line in _filled(text) if _TERM_LINE.match(line)]
    bold_leads = [line for line in _filled(text) if line.startswith(("**", "__"))]
    parted = max((re.split("[,;]", line) for line in _filled(text)), key=len, default=[])
    found = [titles, *levels, page.items, page.top_items, bold, bold_leads, terms, parted]
    found += [page.paragraphs, *(page.rows(text) if page.tables else []), *_read_page(unit, text)]
    return [each for each in found if each]


class _MarkdownPage:
    def __init__(self, text: str) -> None:
        self.headings: list[tuple[str, str]] = []
        self.items: Reading = []
        self.top_items: Reading = []
        self.paragraphs: Reading = []
        self.blocks_of_code: list[Reading] = []
        self.tables: list[Reading] = []
        """The rows of each table, with its header."""
        tokens = _markdown().parse(text)
        depth = 0
        for token, following in zip(tokens, [*tokens, None][1:], strict=True):
            content = following.content if following is not None else ""
            if token.type.endswith("_list_open"):
                depth += 1
            elif token.type.endswith("_list_close"):
                depth -= 1
            elif token.type == "heading_open":
                self.headings.append((token.tag, content))
            elif token.type == "list_item_open":
                self.items.append("")
                self.top_items += [""] if depth == 1 else []
            elif token.type == "paragraph_open" and token.level == 0:
                self.paragraphs.append(content)
            elif token.type in ("fence", "code_block"):
                self.blocks_of_code.append(_filled(token.content))
            elif token.type == "table_open":
                self.tables.append([])
            elif token.type == "tr_open":
                self.tables[-1].append("")
            elif token.type in ("th_open", "td_open"):
                self.tables[-1][-1] += f" {content.casefold()}"

    def rows(self, text: str) -> list[Reading]:
        bodies = [[row for row in table[1:] if row.strip()] for table in self.tables]
        piped = [line for line in _filled(text) if line.lstrip().startswith("|")]
        found = [
            list(chain(*bodies)),
            list(chain(*self.tables)),
            *bodies,
            [line for line in piped if not _SEPARATOR.match(line)],
            *self.blocks_of_code,
            *_read_page("row", text),
        ]
        found = [each for each in found if each]
        return found or [_filled(text), []]

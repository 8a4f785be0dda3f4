"""Reads what file tools answer: numbered lines, page by page, and listings."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass

from activities.text.plain import lines_of
from rehearsal.replay import Call, once
from rehearsal.request_view import failed

_NUMBERED = re.compile(r"^ *(\d+)\t(.*)$")
_TOTAL = re.compile(r"lines \d+-\d+ of (\d+)")
PAGE = 200
MAX_PAGES = 30
_ORIGINAL = (".pdf", ".docx", ".html", ".htm")
READING = ".reading.json"
"""Ending of what is said of how a document was read."""


@dataclass(frozen=True)
class Page:
    """Consecutive lines of a file, each with its number."""

    lines: list[tuple[int, str]]
    more: bool
    total: int = 0
    """Lines of the whole file, where the answer says so."""

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)

    @property
    def after(self) -> int:
        return self.lines[-1][0] + 1 if self.lines else 1


def parse_page(result: str, limit: int) -> Page:
    """The lines of a `read_file` result; of one cut in the middle, those before the cut."""
    if failed(result):
        return Page([], more=False)
    head, cut, _ = result.partition("[TRUNCATED")
    shown = lines_of(head)[:-1] if cut else lines_of(head)
    lines = [
        (int(found.group(1)), found.group(2)) for line in shown if (found := _NUMBERED.match(line))
    ]
    total = _TOTAL.search(head.partition("\n")[0])
    # Without a total in the header a full page is taken to have another after it.
    rest = lines[-1][0] < int(total.group(1)) if lines and total else len(lines) >= limit
    more = bool(lines) and (bool(cut) or rest)
    return Page(lines, more, int(total[1]) if total else 0)


def read_page(path: str, offset: int, limit: int) -> Generator[list[Call], list[str], Page]:
    """One page of a file; empty when it cannot be read."""
    result = yield from once("read_file", path=path, offset=offset, limit=limit)
    return parse_page(result, limit)


def read_all(path: str, limit: int = PAGE) -> Generator[list[Call], list[str], list[str]]:
    """All lines of a file, read page by page."""
    lines: list[str] = []
    offset = 1
    for _ in range(MAX_PAGES):
        page = yield from read_page(path, offset, limit)
        lines += [line for _, line in page.lines]
        if not page.more:
            break
        offset = page.after
    return lines


def list_paths(folder: str) -> Generator[list[Call], list[str], list[str]]:
    """Every file below a folder."""
    result = yield from once("list_files", path=folder, pattern=f"{folder}/*")
    return parse_listing(result)


def parse_listing(result: str) -> list[str]:
    """The files of a `list_files` result: path, two spaces, size."""
    paths = [line.split("  ")[0].strip() for line in result.splitlines()]
    return [
        path
        for path in paths
        if path
        and not path.endswith("/")
        and not path.startswith(("[TRUNCATED", "Nothing in ", "Error"))
    ]


def documents_of(paths: list[str]) -> dict[str, str]:
    """The input documents, each with the file that holds its text (itself when it is text)."""
    inputs = [
        path
        for path in paths
        if path.startswith("documents/")
        and not path.startswith("documents/sources/")
        and not (path.endswith(READING) and path.removesuffix(READING) in paths)
    ]
    texts = {path: text for path in inputs if (text := _companion(path, inputs))}
    beside = set(texts.values())
    return {path: texts.get(path, path) for path in inputs if path not in beside}


def _companion(path: str, inputs: list[str]) -> str | None:
    stem, _, ending = path.rpartition(".")
    for other in inputs:
        if other == path:
            continue
        if other.startswith(path + "."):
            return other
        if f".{ending.lower()}" in _ORIGINAL and other in (f"{stem}.txt", f"{stem}.md"):
            return other
    return None

"""Parses results of file tools: pages of numbered lines, and listings."""

import re
from collections.abc import Generator
from dataclasses import dataclass

from activities.text.safe_text import split_lines
from rehearsal.procedure_replay import Call, call_procedure_tool
from rehearsal.request_view import is_error_result

_NUMBERED = re.compile(r"^ *(\d+)\t(.*)$")
_TOTAL = re.compile(r"lines \d+-\d+ of (\d+)")
PAGE = 200
MAX_PAGES = 30
_ORIGINAL = (".pdf", ".docx", ".html", ".htm")
READING = ".reading.json"
"""Suffix of files that report how well a document was read."""


@dataclass(frozen=True)
class FilePageAnswer:
    """Consecutive lines of a file, each with its number."""

    lines: list[tuple[int, str]]
    more: bool
    total: int = 0
    """Number of lines of the file; 0 if the result does not contain it."""

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)

    @property
    def next_line(self) -> int:
        return self.lines[-1][0] + 1 if self.lines else 1


def parse_page_tool_answer(result: str, limit: int) -> FilePageAnswer:
    """Parse the lines of a `read_file` result; if it is cut, the lines before the cut."""
    if is_error_result(result):
        return FilePageAnswer([], more=False)
    head, cut, _ = result.partition("[TRUNCATED")
    shown = split_lines(head)[:-1] if cut else split_lines(head)
    lines = [
        (int(match.group(1)), match.group(2)) for line in shown if (match := _NUMBERED.match(line))
    ]
    total = _TOTAL.search(head.partition("\n")[0])
    # Without a total in the header, assume that a full page has a successor.
    rest = lines[-1][0] < int(total.group(1)) if lines and total else len(lines) >= limit
    more = bool(lines) and (bool(cut) or rest)
    return FilePageAnswer(lines, more, int(total[1]) if total else 0)


def read_page_from_tool_answer(
    path: str, offset: int, limit: int
) -> Generator[list[Call], list[str], FilePageAnswer]:
    """Read one page of a file; empty if it cannot be read."""
    result = yield from call_procedure_tool("read_file", path=path, offset=offset, limit=limit)
    return parse_page_tool_answer(result, limit)


def read_file_from_tool_answers(
    path: str, limit: int = PAGE
) -> Generator[list[Call], list[str], list[str]]:
    """Read all lines of a file, page by page."""
    lines: list[str] = []
    offset = 1
    for _ in range(MAX_PAGES):
        page = yield from read_page_from_tool_answer(path, offset, limit)
        lines += [line for _, line in page.lines]
        if not page.more:
            break
        offset = page.next_line
    return lines


def list_paths_from_tool_answer(folder: str) -> Generator[list[Call], list[str], list[str]]:
    """Return the paths of all files below a folder."""
    result = yield from call_procedure_tool("list_files", path=folder, pattern=f"{folder}/*")
    return parse_listing_tool_answer(result)


def parse_listing_tool_answer(result: str) -> list[str]:
    """Parse the files of a `list_files` result: path, two spaces, size."""
    paths = [line.split("  ")[0].strip() for line in result.splitlines()]
    return [
        path
        for path in paths
        if path
        and not path.endswith("/")
        and not path.startswith(("[TRUNCATED", "Nothing in ", "Error"))
    ]


def documents_in_tool_answer(paths: list[str]) -> dict[str, str]:
    """Map each input document to the file with its text, which may be the document itself."""
    inputs = [
        path
        for path in paths
        if path.startswith("documents/")
        and not path.startswith("documents/sources/")
        and not (path.endswith(READING) and path.removesuffix(READING) in paths)
    ]
    texts = {path: text for path in inputs if (text := _text_companion_in_answer(path, inputs))}
    beside = set(texts.values())
    return {path: texts.get(path, path) for path in inputs if path not in beside}


def _text_companion_in_answer(path: str, inputs: list[str]) -> str | None:
    stem, _, ending = path.rpartition(".")
    for other in inputs:
        if other == path:
            continue
        if other.startswith(path + "."):
            return other
        if f".{ending.lower()}" in _ORIGINAL and other in (f"{stem}.txt", f"{stem}.md"):
            return other
    return None

"""Running heads, feet and footnotes: the lines of a page that are no part of its sentences."""

import re

from activities.documents.pages import Page

_PAGE_LINE = re.compile(
    r"\s*(?:[-\u2013]\s*)?(?:(?:page|seite)\s*)?\d{1,4}(?:\s*(?:of|von|/)\s*\d{1,4})?(?:\s*[-\u2013])?\s*",
    re.IGNORECASE,
)
_NOTE_MARK = re.compile(r"\s*\[(?:\d{1,3}|[ivxl]{1,6})\]\s+")
_NOTE = re.compile(r"\s*(\d{1,3})\s+(?=\S)")
RUNNING_TITLE = re.compile(
    r"\s*(?:(?:chapter|kapitel|section|abschnitt|appendix|anhang)\s|(?:\d{1,3}|[A-Z])(?:\.\d{1,3})*\.?\s)",
    re.IGNORECASE,
)
MAX_LINES_WITH_FOOT = 400
"""Lines of a page that may have footnotes; a document without pages has more."""


def repeated_running_lines(pages: list[Page]) -> set[str]:
    """Return the shapes of lines at the top or foot of many pages, or of many consecutive ones."""
    pages_by_shape: dict[str, list[int]] = {}
    for place, page in enumerate(pages):
        for shape in {running_line_shape(line) for line in _page_edge_lines(page.text)}:
            pages_by_shape.setdefault(shape, []).append(place)
    return {
        shape
        for shape, places in pages_by_shape.items()
        if len(places) >= max(3, (places[-1] - places[0] + 1) * 0.4)
    }


def _page_edge_lines(text: str) -> list[str]:
    lines = [line for line in text.split("\n") if line.strip()]
    return lines[:3] + lines[3:][-3:]


def running_line_shape(line: str) -> str:
    return " ".join(re.sub(r"\d+", "#", line).split())


def split_running_lines(page: Page, furniture: set[str]) -> tuple[list[str], list[str]]:
    """Return the running lines at both ends of a page, and the lines between them."""
    lines = page.text.split("\n")
    running: list[str] = []
    labels = (page.label, str(page.number))
    for end in (0, -1):
        numbered = False
        for _ in range(3):
            while lines and not lines[end].strip():
                lines.pop(end)
            if not lines:
                break
            if _PAGE_LINE.fullmatch(lines[end]):
                numbered = True
                lines.pop(end)
            elif running_line_shape(lines[end]) in furniture or (
                end and _is_running_foot(lines, numbered or lines[-1].split()[-1] in labels)
            ):
                running.append(lines.pop(end))
    return running, lines


def _is_running_foot(lines: list[str], numbered: bool) -> bool:
    """Return whether the last line is a running foot that names the section, beside the page
    number.
    """
    text = lines[-1].strip()
    above = next((line for line in reversed(lines[:-1]) if line.strip()), "")
    return (
        (numbered or bool(_PAGE_LINE.fullmatch(above)))
        and lines[-2:-1] != [above]  # ordinary text would be this close
        and text[-1] not in ".!?:;"
        and " | " not in text  # a table row, whose last cell may be a figure
        and len(text) <= 70
        and bool(RUNNING_TITLE.match(text))
    )


def split_footnotes(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the page's text without footnotes, and the lines of each footnote.

    A line that begins with a number starts the footnotes if the text above has that number as a
    mark, directly behind a word or its full stop.
    """
    if len(lines) > MAX_LINES_WITH_FOOT:
        return lines, []
    for start in range(len(lines) // 3, len(lines)):
        first_note = _NOTE.match(lines[start])
        if (
            not first_note
            or start == 0
            or not _has_footnote_mark("\n".join(lines[:start]), first_note[1])
        ):
            continue
        notes: list[list[str]] = []
        for line in lines[start:]:
            begins = _NOTE.match(line)
            if begins and int(begins[1]) == int(first_note[1]) + len(notes):
                notes.append([line[begins.end() :]])
            else:
                notes[-1].append(line)
        return lines[:start], notes
    return lines, []


def _has_footnote_mark(text: str, number: str) -> bool:
    return bool(re.search(rf"[^\W\d_][.,;:)\"'\u201d\u2019]{{0,3}}{number}(?!\w|[.,]\d)", text))

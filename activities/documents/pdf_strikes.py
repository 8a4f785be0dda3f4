"""Letters of a PDF that are struck out, by an annotation or by a line drawn through them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium

from activities.documents.pdf_lines import Box

MAX_RULE_HEIGHT = 4.0
"""Thickest line that may strike out text, in points."""
MAX_SLOPE = 0.06
MAX_GAP = 3.0
"""Points between pieces of one line."""
CROSSED_SHARE = 0.7
"""Share of the letters along a line that it has to go through."""
MAX_OBJECTS = 20_000
"""Most objects of a page that are searched for lines that strike out."""
MAX_RULES = 500
"""Most thin lines of a page that are compared with its letters."""


def strike_out_boxes(mark: Any) -> list[Box]:
    """Return the places that an annotation strikes out."""
    boxes = []
    for number in range(min(pdfium.FPDFAnnot_CountAttachmentPoints(mark), 1000)):
        quad = pdfium.FS_QUADPOINTSF()
        if pdfium.FPDFAnnot_GetAttachmentPoints(mark, number, quad):
            across = (quad.x1, quad.x2, quad.x3, quad.x4)
            up = (quad.y1, quad.y2, quad.y3, quad.y4)
            boxes.append(Box(min(across), max(across), min(up), max(up)))
    return boxes


def struck_letters(text: str, boxes: list[Box], struck: list[Box]) -> set[int]:
    """Return the letters in the places that annotations strike out."""
    deleted = set()
    for place, box in enumerate(boxes):
        across, up = (box.left + box.right) / 2, (box.bottom + box.top) / 2
        if text[place] not in "\r\n" and any(
            quad.left <= across <= quad.right and quad.bottom <= up <= quad.top for quad in struck
        ):
            deleted.add(place)
    return deleted


def find_level_lines(page: Any) -> list[Box]:
    """Return the level lines on the page, drawn as strokes or as low areas; pieces are joined."""
    if pdfium.FPDFPage_CountObjects(page) > MAX_OBJECTS:
        return []
    rules: list[Box] = []
    for thing in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH], max_depth=2):
        rules += _level_lines_of_path(thing)
        if len(rules) > MAX_RULES:
            return []
    joined: list[Box] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.bottom), rule.left)):
        last = joined[-1] if joined else None
        if last and abs(last.bottom - rule.bottom) < 1 and rule.left - last.right < MAX_GAP:
            joined[-1] = Box(last.left, max(last.right, rule.right), last.bottom, last.top)
        else:
            joined.append(rule)
    return joined


def _level_lines_of_path(path: Any) -> Iterator[Box]:
    points, width = _path_points(path), ctypes.c_float()
    if not points:
        return
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
    if not stroke.value:
        across, up = zip(*points, strict=True)
        if max(up) - min(up) < MAX_RULE_HEIGHT:
            yield Box(min(across), max(across), min(up), max(up))
        return
    pdfium.FPDFPageObj_GetStrokeWidth(path, width)
    half = min(width.value, MAX_RULE_HEIGHT) / 2
    for (x1, y1), (x2, y2) in pairwise(points):
        if abs(y2 - y1) <= MAX_SLOPE * abs(x2 - x1):
            middle = (y1 + y2) / 2
            yield Box(min(x1, x2), max(x1, x2), middle - half, middle + half)


def _path_points(path: Any) -> list[tuple[float, float]]:
    """Return the points of a path on the page."""
    matrix = path.get_matrix()
    across, up = ctypes.c_float(), ctypes.c_float()
    points = []
    for number in range(min(pdfium.FPDFPath_CountSegments(path), MAX_RULES)):
        segment = pdfium.FPDFPath_GetPathSegment(path, number)
        if pdfium.FPDFPathSegment_GetPoint(segment, across, up):
            points.append(matrix.on_point(across.value, up.value))
    return points


def letters_crossed_by_lines(
    text_page: Any, text: str, boxes: list[Box], rules: list[Box]
) -> set[int]:
    """Return the letters through whose ink a line goes.

    Other lines, as in tables and fractions, run beside letters.
    """
    deleted: set[int] = set()
    for rule in rules:
        height = (rule.bottom + rule.top) / 2
        within = [
            place
            for place, box in enumerate(boxes)
            if box.bottom < height < box.top and rule.left < (box.left + box.right) / 2 < rule.right
        ]
        letters = [place for place in within if text[place].isalnum()]
        crossed = 0
        for place in letters:
            _, bottom, _, top = text_page.get_charbox(place)
            crossed += bottom + 0.2 * (top - bottom) < height < top - 0.15 * (top - bottom)
        if crossed > 1 and crossed >= CROSSED_SHARE * len(letters):
            deleted.update(within)
    return deleted


def join_struck_passages(text: str, deleted: set[int]) -> int:
    """Add the white space between deleted letters, and return the number of passages."""
    passages, end = 0, -1
    for place in sorted(deleted):
        if not passages or text[end:place].strip():
            passages += 1
        else:
            deleted.update(range(end, place))
        end = place + 1
    return passages

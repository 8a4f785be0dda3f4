"""Lines drawn on a page of a PDF: level ones may strike out text, upright ones divide cells."""

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from activities.documents.pdf_lines import Box

MAX_THICKNESS = 4.0
"""Thickest line that may strike out text or divide cells, in points."""
MAX_SLOPE = 0.06
MAX_GAP = 3.0
"""Points between pieces of one line."""
MAX_OBJECTS = 20_000
"""Most objects of a page that are searched for lines."""
MAX_RULES = 500
"""Most lines of each direction that are compared with the letters of a page."""


class Rules(NamedTuple):
    level: list[Box]
    """Pieces of one line are joined."""
    upright: list[Box]


def find_rules(page: Any) -> Rules:
    """Return the lines on the page, drawn as strokes or as thin areas; none if there are many."""
    rules = Rules([], [])
    if pdfium.FPDFPage_CountObjects(page) > MAX_OBJECTS:
        return rules
    for thing in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH], max_depth=2):
        for box in _lines_of_path(thing):
            same = rules.level if box.right - box.left >= box.height else rules.upright
            if len(same) <= MAX_RULES:
                same.append(box)
    level, upright = (same if len(same) <= MAX_RULES else [] for same in rules)
    return Rules(_join_pieces(level), upright)


def _join_pieces(level: list[Box]) -> list[Box]:
    joined: list[Box] = []
    for rule in sorted(level, key=lambda rule: (round(rule.bottom), rule.left)):
        last = joined[-1] if joined else None
        if last and abs(last.bottom - rule.bottom) < 1 and rule.left - last.right < MAX_GAP:
            joined[-1] = Box(last.left, max(last.right, rule.right), last.bottom, last.top)
        else:
            joined.append(rule)
    return joined


def _lines_of_path(path: Any) -> Iterator[Box]:
    points, width = _path_points(path), ctypes.c_float()
    if not points:
        return
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
    if not stroke.value:
        across, up = zip(*points, strict=True)
        if min(max(up) - min(up), max(across) - min(across)) < MAX_THICKNESS:
            yield Box(min(across), max(across), min(up), max(up))
        return
    pdfium.FPDFPageObj_GetStrokeWidth(path, width)
    half = min(width.value, MAX_THICKNESS) / 2
    for (x1, y1), (x2, y2) in pairwise(points):
        if abs(y2 - y1) <= MAX_SLOPE * abs(x2 - x1):
            middle = (y1 + y2) / 2
            yield Box(min(x1, x2), max(x1, x2), middle - half, middle + half)
        elif abs(x2 - x1) <= MAX_SLOPE * abs(y2 - y1):
            middle = (x1 + x2) / 2
            yield Box(middle - half, middle + half, min(y1, y2), max(y1, y2))


def _path_points(path: Any) -> list[tuple[float, float]]:
    matrix = path.get_matrix()
    across, up = ctypes.c_float(), ctypes.c_float()
    points = []
    for number in range(min(pdfium.FPDFPath_CountSegments(path), MAX_RULES)):
        segment = pdfium.FPDFPath_GetPathSegment(path, number)
        if pdfium.FPDFPathSegment_GetPoint(segment, across, up):
            points.append(matrix.on_point(across.value, up.value))
    return points

"""Letters of a PDF that no reader of the page sees.

A page is drawn twice, with and without its text: where a letter makes no difference it is covered,
clipped, white on white, transparent, or on a layer that is off.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pypdfium2.raw as pdfium

from activities.documents.pdf_lines import Box

LEAST_HEIGHT = 1.5
"""Height of letters in points below which nobody reads them."""
MAX_POINTS = 4_000
"""Longest side of a page that is drawn in full size: more than A0 has."""
_WHITE = 0xFA
"""Least red, green and blue of what may be white."""
_DIFFERENCE = 4
"""Least difference of a pixel's red, green or blue that shows."""
_COVER = 4.0
"""Least height and width in points of an area that may cover letters."""
_TEXT, _PATH, _IMAGE = (
    pdfium.FPDF_PAGEOBJ_TEXT,
    pdfium.FPDF_PAGEOBJ_PATH,
    pdfium.FPDF_PAGEOBJ_IMAGE,
)
_INVISIBLE = pdfium.FPDF_TEXTRENDERMODE_INVISIBLE


def find_unseen_letters(page: Any, text_page: Any, text: str, boxes: list[Box]) -> set[int]:
    """Return the letters that are off the page, tiny, or leave no trace where they stand.

    Letters on a picture are left as they are: recognised words lie invisibly on or below a scan.
    """
    left, bottom, right, top = page.get_cropbox()
    unseen = {
        place
        for place, box in enumerate(boxes)
        if box.right > box.left
        and (
            box.right < left
            or box.left > right
            or box.top < bottom
            or box.bottom > top
            # Hyphens are no higher.
            or (text[place].isalnum() and box.height < LEAST_HEIGHT)
        )
    }
    things = list(page.get_objects(max_depth=3))
    if not (any(map(_may_hide, things)) or _has_pale_letters(text_page, text)):
        return unseen
    pictures = [thing.get_bounds() for thing in things if thing.type == _IMAGE]
    doubted = [
        place
        for place, box in enumerate(boxes)
        if text[place].isprintable()
        and not text[place].isspace()
        and box.right > box.left
        and not _lies_in(box, pictures)
    ]
    traces = _count_traces(page, [boxes[place] for place in doubted], things)
    return unseen | {place for place, trace in zip(doubted, traces, strict=True) if not trace}


def _may_hide(thing: Any) -> bool:
    """Whether a part of a page may cover letters, or is text that may be hidden."""
    if thing.type == _TEXT:
        clip = pdfium.FPDFPageObj_GetClipPath(thing)
        return (
            pdfium.FPDFTextObj_GetTextRenderMode(thing) != pdfium.FPDF_TEXTRENDERMODE_FILL
            or pdfium.FPDFPageObj_CountMarks(thing) > 0
            or bool(clip and pdfium.FPDFClipPath_CountPaths(clip) > 0)
        )
    left, bottom, right, top = thing.get_bounds()
    return bool(right - left > _COVER and top - bottom > _COVER)


def _has_pale_letters(text_page: Any, text: str) -> bool:
    parts = [ctypes.c_uint() for _ in range(4)]
    references = [ctypes.byref(part) for part in parts]
    return any(
        pdfium.FPDFText_GetFillColor(text_page.raw, place, *references)
        and (parts[3].value == 0 or all(part.value >= _WHITE for part in parts[:3]))
        for place, letter in enumerate(text)
        if letter.isalnum()
    )


def _lies_in(box: Box, areas: list[tuple[float, float, float, float]]) -> bool:
    """Whether the middle of a letter lies in one of the areas."""
    across, up = (box.left + box.right) / 2, (box.bottom + box.top) / 2
    return any(
        left <= across <= right and bottom <= up <= top for left, bottom, right, top in areas
    )


def _count_traces(page: Any, boxes: list[Box], things: list[Any]) -> list[int]:
    """Return for each box how many pixels change when the text of the page is not drawn."""
    if not boxes:
        return []
    import numpy  # noqa: PLC0415 - few pages need it, and it takes memory

    scale = min(2.0, MAX_POINTS / max(page.get_size()))
    drawn = page.render(scale).to_numpy().astype(numpy.int16)
    modes = [
        (thing, pdfium.FPDFTextObj_GetTextRenderMode(thing))
        for thing in things
        if thing.type == _TEXT
    ]
    try:
        for thing, _ in modes:
            pdfium.FPDFTextObj_SetTextRenderMode(thing, _INVISIBLE)
        without = page.render(scale).to_numpy().astype(numpy.int16)
    finally:
        for thing, mode in modes:
            pdfium.FPDFTextObj_SetTextRenderMode(thing, mode)
    changed = (numpy.abs(drawn - without) > _DIFFERENCE).any(axis=2)
    sums = numpy.zeros((changed.shape[0] + 1, changed.shape[1] + 1), dtype=numpy.int64)
    sums[1:, 1:] = changed.cumsum(0).cumsum(1)
    height, width = changed.shape
    traces = []
    for box in boxes:
        corners = [
            _pixel(page, width, height, across, up)
            for across, up in ((box.left, box.bottom), (box.right, box.top))
        ]
        x1, x2 = (numpy.clip(f(c[0] for c in corners), 0, width) for f in (min, max))
        y1, y2 = (numpy.clip(f(c[1] for c in corners), 0, height) for f in (min, max))
        traces.append(int(sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1]))
    return traces


def _pixel(page: Any, width: int, height: int, across: float, up: float) -> tuple[int, int]:
    x, y = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, across, up, x, y)
    return x.value, y.value

"""Letters of a PDF that are struck out, or that no reader of the page sees.

Struck out by an annotation, or by a line drawn through them. To find what nobody sees, a page is
drawn twice, with and without its text: where a letter makes no difference it is covered, clipped,
white on white, transparent, or on a layer that is off.
"""

import ctypes
from typing import Any

import pypdfium2.raw as pdfium

from activities.documents.pdf_lines import Box

CROSSED_SHARE = 0.7
"""Share of the letters along a line that it has to go through."""
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
_TEXT, _IMAGE = pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_IMAGE
_INVISIBLE = pdfium.FPDF_TEXTRENDERMODE_INVISIBLE


def strike_out_boxes(mark: Any) -> list[Box]:
    boxes = []
    for number in range(min(pdfium.FPDFAnnot_CountAttachmentPoints(mark), 1000)):
        quad = pdfium.FS_QUADPOINTSF()
        if pdfium.FPDFAnnot_GetAttachmentPoints(mark, number, quad):
            across = (quad.x1, quad.x2, quad.x3, quad.x4)
            up = (quad.y1, quad.y2, quad.y3, quad.y4)
            boxes.append(Box(min(across), max(across), min(up), max(up)))
    return boxes


def struck_letters(text: str, boxes: list[Box], struck: list[Box]) -> set[int]:
    return {
        place
        for place, box in enumerate(boxes)
        if text[place] not in "\r\n" and _lies_in(box, struck)
    }


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
    bounds = (thing.get_bounds() for thing in things if thing.type == _IMAGE)
    pictures = [Box(left, right, bottom, top) for left, bottom, right, top in bounds]
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


def _lies_in(box: Box, areas: list[Box]) -> bool:
    """Whether the middle of a letter lies in one of the areas."""
    across, up = (box.left + box.right) / 2, (box.bottom + box.top) / 2
    return any(
        area.left <= across <= area.right and area.bottom <= up <= area.top for area in areas
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

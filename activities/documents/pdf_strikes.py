"""Letters of a PDF that are struck out, by an annotation or by a line drawn through them."""

from __future__ import annotations

from typing import Any

import pypdfium2.raw as pdfium

from activities.documents.pdf_lines import Box

MAX_RULE_HEIGHT = 2.0
"""Thickest line that may strike out text, in points."""
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


def find_thin_lines(page: Any) -> list[Box]:
    """Return the thin lines on the page."""
    if pdfium.FPDFPage_CountObjects(page) > MAX_OBJECTS:
        return []
    rules = []
    for thing in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH], max_depth=2):
        rule = Box(*(thing.get_bounds()[side] for side in (0, 2, 1, 3)))
        if rule.height < MAX_RULE_HEIGHT and rule.right - rule.left > 2 * MAX_RULE_HEIGHT:
            rules.append(rule)
    return rules if len(rules) <= MAX_RULES else []


def letters_crossed_by_lines(text: str, boxes: list[Box], rules: list[Box]) -> set[int]:
    """Return the letters that a line crosses from the first to the last of them.

    Other lines, as in tables and fractions, run beside letters or extend beyond them.
    """
    deleted: set[int] = set()
    for rule in rules:
        height = (rule.bottom + rule.top) / 2
        crossed = [
            place
            for place, box in enumerate(boxes)
            if box.bottom + 0.33 * box.height < height < box.bottom + 0.6 * box.height
            and rule.left < (box.left + box.right) / 2 < rule.right
        ]
        shown = [place for place in crossed if text[place].isalnum()]
        if len(shown) < 2 or shown[-1] - shown[0] > 2 * len(crossed):
            continue
        margin = 0.35 * boxes[shown[0]].height
        ends = (
            min(boxes[place].left for place in crossed) - rule.left,
            rule.right - max(boxes[place].right for place in crossed),
        )
        if all(abs(end) < margin for end in ends):
            deleted.update(crossed)
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

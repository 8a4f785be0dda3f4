"""Document extraction in a child process, which may hang, crash or eat memory without harm.

Parsers of foreign files do all three. The child limits itself (memory, processor time, and an alarm
in case its parent dies); `activities.runtime.child_process` watches it.
"""

import base64
import json
import math
from pathlib import Path
from typing import Any

from activities.documents.document_reader import detect_document_kind, read_document
from activities.documents.pages import (
    DocumentError,
    Page,
    Picture,
    PicturesAlone,
    Quality,
    ReadingResult,
)
from activities.runtime.child_process import run_child

_CHILD = Path(__file__).resolve().with_name("reader_child.py")
_IN_PROCESS_BYTES = 1_000_000


def read_document_bounded(
    name: str, data: bytes, *, seconds: float = 120, memory_mb: int = 2048
) -> ReadingResult:
    """Run `read_document` in a child process, limited to `seconds` and `memory_mb` of address
    space.

    An exception raised in the calling thread kills the child and propagates. Raises `DocumentError`
    (or `PicturesAlone`) as `read_document` does, and if the child ran out of time or memory or
    crashed.
    """
    if len(data) < _IN_PROCESS_BYTES and detect_document_kind(name, data) == "text":
        return read_document(name, data)
    answer = _run_bounded_child(name, data, [], seconds, memory_mb)
    return _parse_child_reading(answer["reading"])


def draw_bounded(name: str, data: bytes, page: int) -> Picture:
    """Run `read_picture` in such a child process. Raises DocumentError."""
    picture = _run_bounded_child(name, data, [str(page)], 60, 2048)["picture"]
    return Picture(**{**picture, "data": base64.b64decode(picture["data"])})


def _run_bounded_child(
    name: str, data: bytes, further: list[str], seconds: float, memory_mb: int
) -> dict[str, Any]:
    """Return the child's answer. Raises DocumentError."""
    arguments = [name, str(math.ceil(seconds)), str(memory_mb), *further]
    child = run_child(_CHILD, arguments, data, seconds)
    too_big = f"{name}: reading it needs more than {memory_mb} MB of memory; split the file"
    if child.was_too_slow:
        raise DocumentError(
            f"{name}: reading it took more than {seconds:g} s and was stopped; split the file"
        )
    # PDFium exits silently when it gets no memory; a damaged heap would be reported.
    if child.was_too_big or (child.crash_signal == "SIGABRT" and not child.stderr.strip()):
        raise DocumentError(too_big)
    if child.crash_signal:
        raise DocumentError(
            f"{name}: reading it crashed the parser ({child.crash_signal}); "
            "save it anew from the program it comes from, or as another format"
        )
    if child.status != 0:
        # The child could not even start, which is not the document's fault.
        raise RuntimeError(
            f"the extraction process failed with status {child.status}: {child.last_line}"
        )
    answer: dict[str, Any] = json.loads(child.stdout)
    if "memory" in answer:
        raise DocumentError(too_big)
    if "pictures" in answer:
        raise PicturesAlone(answer["error"], answer["pictures"])
    if "error" in answer:
        raise DocumentError(answer["error"])
    return answer


def _parse_child_reading(answer: dict[str, Any]) -> ReadingResult:
    pages = [
        Page(**{**page, "links": [(address, words) for address, words in page["links"]]})
        for page in answer["pages"]
    ]
    return ReadingResult(**{**answer, "pages": pages, "quality": Quality(**answer["quality"])})

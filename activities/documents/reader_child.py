"""The process of `bounded_reader.py`: `python reader_child.py NAME SECONDS MEMORY_MB [PAGE]`.

It reads the document from standard input and writes the pages or the error as JSON to standard
output; with PAGE, the picture of that page.

Run by its path and with its parent packages left empty: their `__init__` would load the whole
worker, seconds of imports and megabytes that a parser has no use for.
"""

import base64
import contextlib
import json
import resource
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

_GRACE_SECONDS = 5


def _limit_reader_child(seconds: int, memory_mb: int) -> None:
    memory = memory_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 2))
    # macOS knows this limit but refuses to set it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # In case the child sleeps after its parent died.
    signal.alarm(seconds + _GRACE_SECONDS)


def _register_reader_package(name: str, folder: Path) -> None:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def _build_child_answer(name: str, data: bytes) -> dict[str, object]:
    from activities.documents.document_reader import read_document  # noqa: PLC0415
    from activities.documents.pages import DocumentError, PicturesAlone  # noqa: PLC0415

    try:
        reading = read_document(name, data)
    except PicturesAlone as error:
        return {"error": str(error), "pictures": error.page_count}
    except DocumentError as error:
        return {"error": str(error)}
    return {"reading": asdict(reading)}


def _draw_page_in_child(name: str, data: bytes, page: int) -> dict[str, object]:
    from activities.documents.pages import DocumentError  # noqa: PLC0415
    from activities.documents.picture import read_picture  # noqa: PLC0415

    try:
        picture = read_picture(name, data, page)
    except DocumentError as error:
        return {"error": str(error)}
    return {"picture": {**vars(picture), "data": base64.b64encode(picture.data).decode()}}


def _run_reader_child(name: str, seconds: int, memory_mb: int, page: int | None) -> None:
    _limit_reader_child(seconds, memory_mb)
    folder = Path(__file__).resolve().parent
    _register_reader_package("activities", folder.parent)
    _register_reader_package("activities.documents", folder)
    _register_reader_package("protocol", folder.parents[1] / "protocol")
    try:
        data = sys.stdin.buffer.read()
        answer = (
            _build_child_answer(name, data)
            if page is None
            else _draw_page_in_child(name, data, page)
        )
    except MemoryError:
        answer = {"memory": True}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _, document, limit, most, *pages = sys.argv
    _run_reader_child(document, int(limit), int(most), int(pages[0]) if pages else None)

"""Whether a file is of the kind that its name says: a PDF, an image, an office document, JSON."""

import io
import json
import re
import zipfile

import re2

_ARCHIVES = {
    "docx": ("a Word document", "word/document"),
    "docm": ("a Word document", "word/document"),
    "xlsx": ("an Excel workbook", "xl/workbook"),
    "xlsm": ("an Excel workbook", "xl/workbook"),
    "pptx": ("a PowerPoint presentation", "ppt/presentation"),
    "odt": ("an OpenDocument text", "content.xml"),
    "ods": ("an OpenDocument sheet", "content.xml"),
    "odp": ("an OpenDocument presentation", "content.xml"),
    "epub": ("an EPUB book", "META-INF/container.xml"),
    "zip": ("a ZIP archive", ""),
}
"""Formats that are ZIP archives, with the beginning of a part that each has."""
_BINARY = re.compile(
    r"png|jpe?g|gif|webp|bmp|tiff?|ico|heic|avif|mp3|wav|ogg|flac|m4a|mp4|webm|mov|avi|mkv|t?gz|bz2"
    r"|xz|7z|zst|tar|parquet|feather|np[yz]|woff2?|ttf|otf|sqlite3?"
)
"""Endings of formats that no plain text is in."""
_JSON = ("json", "geojson", "ipynb")
_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT = re2.compile(rf"(?s){_STRING}|//[^\n]*|/\*.*?\*/")
_LAST_COMMA = re2.compile(rf"(?s){_STRING}|,(\s*[\]}}])")
_TEMPLATE = re.compile(r"\{\{|\{%|\$\{|<%")
_OLE = b"\xd0\xcf\x11\xe0"
"""Begins an office document that is encrypted."""
PDF_HEADER_BYTES = 1024
LFS_POINTER = b"version https://git-lfs"
"""Begins what stands in a repository for a large file that is kept elsewhere."""
SAMPLE_BYTES = 100_000
MAX_LENIENT = 50_000
"""Characters of a faulty JSON file up to which it may have comments; a longer one is let pass."""


def wrong_format_reason(path: str, content: bytes) -> str | None:
    """Return why a file is not what its ending says, as the end of a sentence about it."""
    _, dot, ending = path.lower().rpartition("/")[2].rpartition(".")
    if not dot:
        return None
    if ending == "pdf" and b"%PDF-" not in content[:PDF_HEADER_BYTES]:
        return "is not a PDF: it does not begin with %PDF-"
    if ending in _ARCHIVES:
        return _archive_problem(ending, content)
    if _BINARY.fullmatch(ending) and _is_plain_text(content):
        return f"is plain text, and not of the format that .{ending} stands for"
    if ending in _JSON:
        return _json_problem(content)
    return None


def _archive_problem(ending: str, content: bytes) -> str | None:
    kind, part = _ARCHIVES[ending]
    if content.startswith(_OLE):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        is_text = "plain text" if _is_plain_text(content) else "no archive that can be opened"
        return f"is not {kind}: it is {is_text}"
    if any(name.startswith(part) for name in names):
        return None
    return f"is not {kind}: its archive has no part {part}"


def _is_plain_text(content: bytes) -> bool:
    if content.startswith(LFS_POINTER):
        return False
    try:
        text = content[:SAMPLE_BYTES].decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return False
        text = content[: error.start].decode()
    return all(char.isprintable() or char in "\t\r\n\f\ufeff" for char in text)


def _json_problem(content: bytes) -> str | None:
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = content.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")
    problem = _json_error(text)
    if problem is None or len(text) > MAX_LENIENT or _TEMPLATE.search(text):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    without = _LAST_COMMA.sub(r"\1\2", _COMMENT.sub(r"\1", text))
    if _json_error(without) is None or not any(map(_json_error, lines)):
        return None
    return f"is not JSON: line {problem.lineno}, column {problem.colno}: {problem.msg}"


def _json_error(text: str) -> json.JSONDecodeError | None:
    try:
        json.loads(text, strict=False, parse_int=str)
    except json.JSONDecodeError as error:
        return error
    except RecursionError:
        pass
    return None

"""The documents a job starts with: from the worker's disk, from staging, or from an address."""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import httpx2

from activities.checkpoints import Files, PathRefused, Root, parse_path
from activities.checkpoints.remote_files import fetch_remote_file
from activities.documents.bounded_reader import read_document_bounded
from activities.documents.document_reader import needs_document_reader
from activities.documents.pages import DocumentError, PicturesAlone, Quality, render_pages
from activities.job.result_cache import ResultCache
from activities.runtime.http_encoding import ACCEPT_HEADERS, BodyDecoder
from config.schema.agent import ConfigError
from protocol.notices import Notice
from protocol.repository_start import STAGED
from protocol.short_text import one_line

FETCH_SECONDS = 60
MAX_DOUBTS = 50


@dataclass(frozen=True)
class InputDocument:
    name: str
    data: bytes
    text: str
    quality: Quality

    def put_into(self, files: Files) -> Files:
        """Write it into `documents/`, with notes, and its text unless it is readable itself."""
        return put_input_document(
            files, f"documents/{self.name}", self.data, self.text, self.quality
        )

    def notices(self) -> list[Notice]:
        return [
            Notice(text=f"document {self.name}: {warning}", topic="document")
            for warning in self.quality.warnings
        ]


def put_input_document(files: Files, path: str, data: bytes, text: str, quality: Quality) -> Files:
    files = files.write(path, data)
    if needs_document_reader(path, data):
        files = files.write(input_document_text_name(path), text.encode())
    if quality:
        files = files.write(input_document_quality_name(path), quality.as_json().encode())
    return files


def read_input_documents(
    root: Root,
    sources: list[str],
    limit: int,
    used_names: Iterable[str] = (),
    cache: ResultCache | None = None,
    remote: str | None = None,
    *,
    can_view: bool = False,
) -> list[InputDocument]:
    """Read and extract every document, or none.

    Args:
        sources: Paths that the worker can read, `staged:` names, http(s) addresses.
        used_names: Names in `documents/` that are in use.
        cache: Where a project keeps the texts of documents, by content: each is extracted once.
        remote: Where a staged document is fetched from that is not here.
        can_view: Whether the job's model can look at pictures, which otherwise are refused.

    Raises ConfigError, GitNotInstalled, RemoteUnavailable.
    """
    documents: list[InputDocument] = []
    for source in sources:
        name, data = _read_input_document_source(root, source, limit, remote)
        name = _unused_input_name(name, {*used_names, *(document.name for document in documents)})
        try:
            parse_path(f"documents/{input_document_text_name(name)}")
        except PathRefused as error:
            raise ConfigError(f"document {source}: its name cannot be used. {error}") from None
        try:
            documents.append(InputDocument(name, data, *_read_input_document(name, data, cache)))
        except PicturesAlone as error:
            if not can_view:
                raise ConfigError(f"document {source}: {error}") from None
            documents.append(_describe_picture_document(name, data, error))
        except DocumentError as error:
            raise ConfigError(f"document {source}: {error}") from None
    return documents


def _describe_picture_document(name: str, data: bytes, pictures: PicturesAlone) -> InputDocument:
    """Return a document that only a model with vision can read: its pages have no text."""
    pages = pictures.placeholder_pages()
    numbers = [page.number for page in pages]
    quality = Quality(["It is pictures alone, without text: view_image shows them."], numbers, True)
    return InputDocument(name, data, render_pages(pages), quality)


def _read_input_document(name: str, data: bytes, cache: ResultCache | None) -> tuple[str, Quality]:
    if cache is None:
        return _extract_input_document(name, data)
    # The extension is part of the key, since it decides how the content is read.
    read_as = f"{PurePosixPath(name).suffix.lower()}\n".encode()
    key = f"reading-{hashlib.sha256(read_as + data).hexdigest()}"
    if (stored := cache.find(key)) is not None:
        kept_text = json.loads(stored)
        return kept_text["text"], Quality(**kept_text["quality"])
    text, quality = _extract_input_document(name, data)
    cache.put(key, json.dumps({"text": text, "quality": asdict(quality)}).encode())
    return text, quality


def _extract_input_document(name: str, data: bytes) -> tuple[str, Quality]:
    reading = read_document_bounded(name, data)
    return render_pages(reading.pages), reading.quality


def _read_input_document_source(
    root: Root, source: str, limit: int, remote: str | None
) -> tuple[str, bytes]:
    if source.startswith(("http://", "https://")):
        return _fetch_input_document(source, limit)
    if source.startswith(STAGED):
        parts = PurePosixPath(source.removeprefix(STAGED)).parts
        if not parts or ".." in parts or PurePosixPath(*parts).is_absolute():
            raise ConfigError(f"document {source}: not a staged document")
        path = root.staged.joinpath(*parts)
        if remote and not path.exists():
            fetch_remote_file(remote, source.removeprefix(STAGED), path)
    else:
        path = Path(source)
    try:
        data = _read_input_document_file(path, limit + 1)
    except OSError as error:
        if source.startswith(STAGED) and isinstance(error, FileNotFoundError):
            raise ConfigError(
                f"document {source}: not below the worker's workspaces root {root.path}; start the "
                "job where LONGHAUL_WORKSPACES names that folder"
            ) from None
        raise ConfigError(
            f"document {source}: the worker cannot read it ({error.strerror or error})"
        ) from None
    except ValueError as error:
        raise ConfigError(f"document {source}: not a path ({error})") from None
    if data is None:
        raise ConfigError(f"document {source}: not a regular file")
    if len(data) > limit:
        raise ConfigError(f"document {source}: larger than {limit:,} bytes")
    return path.name, data


def _read_input_document_file(path: Path, most: int) -> bytes | None:
    """Return at most `most` bytes of a regular file; None for other files."""
    # Without O_NONBLOCK, opening a FIFO waits for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def _fetch_input_document(address: str, limit: int) -> tuple[str, bytes]:
    data = bytearray()
    deadline = time.monotonic() + FETCH_SECONDS
    try:
        with httpx2.stream(
            "GET", address, headers=ACCEPT_HEADERS, timeout=FETCH_SECONDS, follow_redirects=True
        ) as response:
            response.raise_for_status()
            body = BodyDecoder(response.headers.get_list("content-encoding", split_commas=True))
            for raw in response.iter_raw():
                for piece in body.decode_pieces(raw):
                    data += piece
                    if len(data) > limit:
                        raise ConfigError(f"document {address}: larger than {limit:,} bytes")
                # The client's time-out applies to each read, so a trickle could go on for ever.
                if time.monotonic() > deadline:
                    raise ConfigError(f"document {address}: took over {FETCH_SECONDS} s to fetch")
            body.check_complete()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = one_line(str(error), 300)
        raise ConfigError(f"document {address}: cannot be fetched ({reason})") from None
    return _input_document_name(address), bytes(data)


def _input_document_name(address: str) -> str:
    name = PurePosixPath(unquote(urlsplit(address).path)).name
    return re.sub(r"[^\w .()+,=@-]", "-", name)[-100:].strip(". ") or "document"


def input_document_text_name(name: str) -> str:
    return f"{name}.txt"


def input_document_quality_name(name: str) -> str:
    return f"{name}.reading.json"


def original_document_paths(files: Files) -> list[str]:
    """Return the paths of all files in `documents/` but the texts and warnings beside others."""
    if files.entry("documents") is None:
        return []
    paths = [entry.path for entry in files.walk("documents") if entry.kind == "file"]
    names = (input_document_text_name, input_document_quality_name)
    beside = {name(path) for path in paths for name in names}
    return [path for path in paths if path not in beside]


def input_document_warnings(files: Files) -> list[str]:
    if files.entry("documents") is None:
        return []
    ending = input_document_quality_name("")
    records = [
        entry
        for entry in files.walk("documents")
        # An ordinary document may have such a name.
        if entry.path.endswith(ending) and files.entry(entry.path.removesuffix(ending))
    ]
    lines = []
    for entry in records[:MAX_DOUBTS]:
        quality = Quality.from_json(files.read_entry(entry).decode())
        lines.append(one_line(f"{entry.path.removesuffix(ending)}: {quality}", 400))
    more = len(records) - MAX_DOUBTS
    return [*lines, f"and {more} more documents were not read well"] if more > 0 else lines


def _unused_input_name(name: str, used_names: set[str]) -> str:
    """Return the name, with a number if it or a name derived from it is in use."""
    beside = {
        name_of(other)
        for other in used_names
        for name_of in (input_document_text_name, input_document_quality_name)
    }
    candidate, number = name, 2
    while candidate in used_names | beside or not used_names.isdisjoint(
        (input_document_text_name(candidate), input_document_quality_name(candidate))
    ):
        path = PurePosixPath(name)
        candidate, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return candidate

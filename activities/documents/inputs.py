"""The documents a job starts with: from the worker's disk, from staging, or from an address."""

from __future__ import annotations

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

from activities.checkpoints import Files, PathRefused, Root, parse
from activities.documents import DocumentError, Quality, read_bounded, render
from activities.documents.text import needs_text_beside
from activities.job.kept_results import KeptResults
from activities.runtime.http_encoding import ACCEPTED, Unpacking
from config.schema.agent import Problem
from protocol.text import one_line

STAGED = "staged:"
"""Prefix of documents that `starter.py` put below the workspaces root."""
FETCH_SECONDS = 60
MOST_DOUBTS = 50
"""Documents that a result names for how they were read."""


@dataclass(frozen=True)
class Document:
    """An input document with its text, page marks kept, and how well it was read."""

    name: str
    data: bytes
    text: str
    quality: Quality

    def put_into(self, files: Files) -> Files:
        """Into `documents/`: the text beside it, unless it is itself text that anyone can read,
        and what is to be said of the reading."""
        return put_document(files, f"documents/{self.name}", self.data, self.text, self.quality)

    def notices(self) -> list[str]:
        """For people: what of it the job does without."""
        return [f"document {self.name}: {warning}" for warning in self.quality.warnings]


def put_document(files: Files, path: str, data: bytes, text: str, quality: Quality) -> Files:
    """A document with what stands beside it."""
    files = files.write(path, data)
    if needs_text_beside(path, data):
        files = files.write(text_beside(path), text.encode())
    if quality:
        files = files.write(quality_beside(path), quality.as_json().encode())
    return files


def read_documents(
    root: Root,
    sources: list[str],
    limit: int,
    taken: Iterable[str] = (),
    kept: KeptResults | None = None,
) -> list[Document]:
    """Read and extract every document, or none.

    Args:
        root: Where staged documents are.
        sources: Paths the worker can read, `staged:` names, http(s) addresses.
        limit: Largest document, in bytes.
        taken: Names in `documents/` that are in use.
        kept: Where a project keeps the texts of documents, by content: each is extracted once.

    Raises:
        Problem: one line that names the document and what is wrong with it.
    """
    documents: list[Document] = []
    for source in sources:
        name, data = _read(root, source, limit)
        name = _unused(name, {*taken, *(document.name for document in documents)})
        try:
            parse(f"documents/{text_beside(name)}")
        except PathRefused as error:
            raise Problem(f"document {source}: its name cannot be used. {error}") from None
        try:
            documents.append(Document(name, data, *_text(name, data, kept)))
        except DocumentError as error:
            raise Problem(f"document {source}: {error}") from None
    return documents


def _text(name: str, data: bytes, kept: KeptResults | None) -> tuple[str, Quality]:
    if kept is None:
        return _extracted(name, data)
    # By the ending too, which says how the content is read.
    read_as = f"{PurePosixPath(name).suffix.lower()}\n".encode()
    key = f"reading-{hashlib.sha256(read_as + data).hexdigest()}"
    if (found := kept.find(key)) is not None:
        kept_text = json.loads(found)
        return kept_text["text"], Quality(**kept_text["quality"])
    text, quality = _extracted(name, data)
    kept.keep(key, json.dumps({"text": text, "quality": asdict(quality)}).encode())
    return text, quality


def _extracted(name: str, data: bytes) -> tuple[str, Quality]:
    reading = read_bounded(name, data)
    return render(reading.pages), reading.quality


def _read(root: Root, source: str, limit: int) -> tuple[str, bytes]:
    if source.startswith(("http://", "https://")):
        return _fetch(source, limit)
    if source.startswith(STAGED):
        parts = PurePosixPath(source.removeprefix(STAGED)).parts
        if not parts or ".." in parts or PurePosixPath(*parts).is_absolute():
            raise Problem(f"document {source}: not a staged document")
        path = root.staged.joinpath(*parts)
    else:
        path = Path(source)
    try:
        data = _file(path, limit + 1)
    except OSError as error:
        if source.startswith(STAGED) and isinstance(error, FileNotFoundError):
            raise Problem(
                f"document {source}: not below the worker's workspaces root {root.path}; start the "
                "job where LONGHAUL_WORKSPACES names that folder"
            ) from None
        raise Problem(
            f"document {source}: the worker cannot read it ({error.strerror or error})"
        ) from None
    except ValueError as error:
        raise Problem(f"document {source}: not a path ({error})") from None
    if data is None:
        raise Problem(f"document {source}: not a regular file")
    if len(data) > limit:
        raise Problem(f"document {source}: larger than {limit:,} bytes")
    return path.name, data


def _file(path: Path, most: int) -> bytes | None:
    """The first `most` bytes of a regular file; None for anything else, which may have no end."""
    # Without O_NONBLOCK, opening a FIFO waits for somebody to write into it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def _fetch(address: str, limit: int) -> tuple[str, bytes]:
    data = bytearray()
    deadline = time.monotonic() + FETCH_SECONDS
    try:
        with httpx2.stream(
            "GET", address, headers=ACCEPTED, timeout=FETCH_SECONDS, follow_redirects=True
        ) as response:
            response.raise_for_status()
            body = Unpacking(response.headers.get_list("content-encoding", split_commas=True))
            for raw in response.iter_raw():
                for piece in body.pieces(raw):
                    data += piece
                    if len(data) > limit:
                        raise Problem(f"document {address}: larger than {limit:,} bytes")
                # The client's own time-out is for each read: a drip would go on for ever.
                if time.monotonic() > deadline:
                    raise Problem(f"document {address}: took over {FETCH_SECONDS} s to fetch")
            body.end()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        if isinstance(error, Problem):
            raise
        told = one_line(str(error), 300)
        raise Problem(f"document {address}: cannot be fetched ({told})") from None
    return _name_in(address), bytes(data)


def _name_in(address: str) -> str:
    """A file name from an address, which may hold whatever a file name must not."""
    name = PurePosixPath(unquote(urlsplit(address).path)).name
    return re.sub(r"[^\w .()+,=@-]", "-", name)[-100:].strip(". ") or "document"


def text_beside(name: str) -> str:
    """Name of the file that holds a document's text."""
    return f"{name}.txt"


def quality_beside(name: str) -> str:
    """Name of the file that says how a document was read, where there is something to say."""
    return f"{name}.reading.json"


def doubts(files: Files) -> list[str]:
    """What is to be said of how the documents of a workspace were read, a line for each."""
    if files.entry("documents") is None:
        return []
    ending = quality_beside("")
    records = [
        entry
        for entry in files.walk("documents")
        # A document of its own may be named so.
        if entry.path.endswith(ending) and files.entry(entry.path.removesuffix(ending))
    ]
    lines = []
    for entry in records[:MOST_DOUBTS]:
        quality = Quality.from_json(files.content(entry).decode())
        lines.append(one_line(f"{entry.path.removesuffix(ending)}: {quality}", 400))
    more = len(records) - MOST_DOUBTS
    return [*lines, f"and {more} more documents were not read well"] if more > 0 else lines


def _unused(name: str, taken: set[str]) -> str:
    """A second document of the same name gets a number; so does one named as what stands beside
    another."""
    beside = {said(other) for other in taken for said in (text_beside, quality_beside)}
    candidate, number = name, 2
    while candidate in taken | beside or not taken.isdisjoint(
        (text_beside(candidate), quality_beside(candidate))
    ):
        path = PurePosixPath(name)
        candidate, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return candidate

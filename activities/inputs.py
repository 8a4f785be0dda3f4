"""The documents a job starts with: from the worker's disk, from staging, or from an address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import httpx2

from activities.checkpoints import Root
from activities.documents import DocumentError, extract_bounded, render
from config.schema import Problem

STAGED = "staged:"
"""Prefix of documents that `starter.py` put below the workspaces root."""
FETCH_SECONDS = 60


@dataclass(frozen=True)
class Document:
    """An input document with its text, page marks kept."""

    name: str
    data: bytes
    text: str


def read_documents(root: Root, sources: list[str], limit: int) -> list[Document]:
    """Read and extract every document, or none.

    Args:
        root: Where staged documents are.
        sources: Paths the worker can read, `staged:` names, http(s) addresses.
        limit: Largest document, in bytes.

    Raises:
        Problem: one line that names the document and what is wrong with it.
    """
    documents: list[Document] = []
    for source in sources:
        name, data = _read(root, source, limit)
        name = _unused(name, {document.name for document in documents})
        try:
            pages = extract_bounded(name, data)
        except DocumentError as error:
            raise Problem(f"document {source}: {error}") from None
        documents.append(Document(name, data, render(pages)))
    return documents


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
        if path.is_file() and path.stat().st_size > limit:
            raise Problem(f"document {source}: larger than {limit:,} bytes")
        return path.name, path.read_bytes()
    except OSError as error:
        raise Problem(
            f"document {source}: the worker cannot read it ({error.strerror or error})"
        ) from None


def _fetch(address: str, limit: int) -> tuple[str, bytes]:
    data = b""
    try:
        with httpx2.stream(
            "GET", address, timeout=FETCH_SECONDS, follow_redirects=True
        ) as response:
            response.raise_for_status()
            for piece in response.iter_bytes():
                data += piece
                if len(data) > limit:
                    raise Problem(f"document {address}: larger than {limit:,} bytes")
    except httpx2.HTTPError as error:
        raise Problem(f"document {address}: cannot be fetched ({error})") from None
    return PurePosixPath(unquote(urlsplit(address).path)).name or "document", data


def _unused(name: str, taken: set[str]) -> str:
    """A second document of the same name gets a number."""
    candidate, number = name, 2
    while candidate in taken:
        path = PurePosixPath(name)
        candidate, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return candidate

"""Files of a fetched page in `documents/sources/`.

Only `fetch_page` writes there, so a quote from these files was on the page:

    <name>               the page as received, decompressed
    <name>.txt           its text with page marks, as beside every document (`render`, `parse`);
                         missing if the page itself is UTF-8 text
    <name>.reading.json  warnings about the reading, if there are any
    <name>.source.json   origin: url (as requested), final_url (after redirects), title,
                         type, pages, bytes, sha256 of <name>

`<name>` is `<page_source_stem(url)>.<pdf|docx|html|md|json|xml|txt>`, from the requested address
without its fragment. Fetching the address again replaces the files.
"""

import hashlib
import html
import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urldefrag, urljoin

import httpx2

from activities.checkpoints import Files
from activities.documents.bounded_reader import read_document_bounded
from activities.documents.document_reader import detect_document_kind
from activities.documents.encoding import decode_by_encoding_label, is_utf8
from activities.documents.pages import DocumentError, Page, Quality, render_pages
from activities.job.input_documents import put_input_document
from activities.text.safe_text import as_readable_json
from activities.web.page_addresses import PageRefused
from activities.web.page_fetch import FetchedPage

FOLDER = "documents/sources"
SOURCE_ENDING = ".source.json"
_TITLE = re.compile(rb"<title[^>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
_ENDINGS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/markdown": "md",
    "application/json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
}


@dataclass(frozen=True)
class PageSource:
    name: str
    title: str
    links: dict[str, str]
    """Link targets with the words of each link, which the page's text does not show."""
    pages: list[Page]
    quality: Quality
    fetched: FetchedPage

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}"

    def put_into(self, files: Files) -> Files:
        """Write the page's files, replacing those of an earlier fetch of the same address."""
        stem = self.name.rpartition(".")[0]
        if files.entry(FOLDER):
            for entry in files.children(FOLDER):
                if PurePosixPath(entry.path).name.startswith(f"{stem}."):
                    files = files.delete(f"{FOLDER}/{PurePosixPath(entry.path).name}")
        files = put_input_document(
            files, self.path, self.fetched.data, render_pages(self.pages), self.quality
        )
        about = {
            "url": self.fetched.url,
            "final_url": self.fetched.final_url,
            "title": self.title,
            "type": self.fetched.media_type,
            "pages": len(self.pages),
            "bytes": len(self.fetched.data),
            "sha256": hashlib.sha256(self.fetched.data).hexdigest(),
        }
        return files.write(f"{self.path}{SOURCE_ENDING}", as_readable_json(about).encode())


def read_page_source(fetched: FetchedPage) -> PageSource:
    """Read a fetched page.

    Raises:
        PageRefused: Its text cannot be read.
    """
    stem, ending = page_source_stem(fetched.url), _page_source_ending(fetched)
    data = _page_source_in_utf8(fetched)
    try:
        kind = detect_document_kind(f"page.{ending}", data)
        # The content decides the kind rather than the declared type.
        name = f"{stem}.{kind if kind != 'text' else ending}"
        reading = read_document_bounded(name, data)
    except DocumentError as error:
        reason = str(error).partition(": ")[2] or str(error)
        raise PageRefused(f"{fetched.url}: {reason}. Or take another source.") from None
    title = _page_source_title(data) if name.endswith(".html") else ""
    links = _page_source_links(reading.pages, fetched.final_url)
    return PageSource(name, title, links, reading.pages, reading.quality, fetched)


def find_page_sources(files: Files, url: str) -> list[str]:
    """Return paths of pages fetched from an address, or redirected to it."""
    address = _plain_page_source_url(url)
    if files.entry(FOLDER) is None:
        return []
    paths = []
    for entry in files.children(FOLDER):
        if entry.path.endswith(SOURCE_ENDING):
            about = json.loads(files.read_entry(entry))
            if address in (
                _plain_page_source_url(about["url"]),
                _plain_page_source_url(about["final_url"]),
            ):
                paths.append(entry.path.removesuffix(SOURCE_ENDING))
    return paths


def _plain_page_source_url(url: str) -> str:
    return urldefrag(url).url.rstrip("/")


def page_source_stem(url: str) -> str:
    """Return a page's file name without ending: readable, and different for any two addresses.

    Args:
        url: The requested address; its fragment is ignored.
    """
    parts = httpx2.URL(url).copy_with(fragment=None)
    host_and_path = f"{parts.raw_host.decode()}{parts.path}".lower()
    words = re.sub(r"(?:[^a-z0-9.]|\.(?![a-z0-9]))+", "-", host_and_path)
    words = re.sub(r"\.(html?|pdf|docx|md|txt|json|xml)$", "", words)
    digest = hashlib.sha256(str(parts).encode()).hexdigest()[:10]
    return f"{words[:80].strip('.-')}-{digest}"


def _page_source_ending(fetched: FetchedPage) -> str:
    if (known := _ENDINGS.get(fetched.media_type)) is not None:
        return known
    if fetched.media_type.endswith("+json"):
        return "json"
    if fetched.media_type.endswith("+xml"):
        return "xml"
    named = PurePosixPath(httpx2.URL(fetched.final_url).path).suffix.lower()
    return "md" if named in (".md", ".markdown") else "txt"


def _page_source_in_utf8(fetched: FetchedPage) -> bytes:
    """Return the page in UTF-8, since its content may not name the encoding the server declared."""
    if not fetched.charset or not fetched.media_type.startswith(("text/", "application/xhtml")):
        return fetched.data
    if is_utf8(fetched.data):
        return fetched.data
    return decode_by_encoding_label(fetched.data, fetched.charset).encode()


def _page_source_title(data: bytes) -> str:
    match = _TITLE.search(data[:200_000])
    if not match:
        return ""
    text = html.unescape(match[1].decode("utf-8", errors="replace"))
    return " ".join(text.split())[:200]


def _page_source_links(pages: list[Page], base: str) -> dict[str, str]:
    links: dict[str, str] = {}
    for address, words in (link for page in pages for link in page.links):
        try:
            target = urldefrag(urljoin(base, address)).url
        except ValueError:
            continue
        if target.startswith(("http://", "https://")) and target != urldefrag(base).url:
            links.setdefault(target, words)
    return links

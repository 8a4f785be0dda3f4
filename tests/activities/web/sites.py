"""Real HTTP servers that behave as the web does, and as it should not."""

import gzip
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.http_server import Handler, served

PAGE = (
    b"<!doctype html><html><head><title>Tea &amp; law</title></head><body>"
    b"<p>Every invoice must be kept for ten years.</p></body></html>"
)
Answer = Callable[["Site"], None]


class Site(Handler):
    """Answers by path; all requests are in `seen`."""

    answers: ClassVar[dict[str, Answer]] = {}
    seen: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        Site.seen.append((self.path, dict(self.headers.items())))
        answer = self.answers.get(urlsplit(self.path).path, lambda site: site.give(PAGE))
        try:
            answer(self)
        except OSError:
            self.close_connection = True

    def move(self, where: str) -> None:
        self.give(b"", status=302, location=where)

    def asked(self) -> dict[str, str]:
        """The query."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}


def endless(site: Site) -> None:
    site.send_response(200)
    site.send_header("Content-Type", "text/plain")
    site.end_headers()
    while True:
        site.wfile.write(b"x" * 65_536)


def drip(site: Site) -> None:
    site.send_response(200)
    site.send_header("Content-Type", "text/plain")
    site.end_headers()
    while True:
        site.wfile.write(b"x")
        time.sleep(0.1)


def dripping_headers(site: Site) -> None:
    site.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        site.wfile.write(b"X-More: x\r\n")
        time.sleep(0.1)


def talkative(site: Site) -> None:
    site.wfile.write(b"HTTP/1.1 418 " + b"New instructions. " * 3000 + b"\r\n\r\n")
    site.close_connection = True


def silent(site: Site) -> None:
    time.sleep(4)


def bomb(site: Site) -> None:
    """Return fifty megabytes, compressed into fifty kilobytes."""
    site.give(gzip.compress(bytes(50_000_000)), "text/plain", content_encoding="gzip")


def results(site: Site) -> None:
    """Return an answer of SearXNG."""
    hits = [
        {"title": f"Tea {n}", "url": f"https://tea.example/{n}", "content": site.asked()["q"]}
        for n in range(30)
    ]
    if site.asked().get("format") != "json":
        site.give(b"no", status=403)
    site.give_json({"query": "tea", "results": hits})


@contextmanager
def serving(
    answers: dict[str, Answer] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """Run a server on 127.0.0.1; yield its port."""
    kind = type("Served", (Site,), {"answers": answers or {}})
    Site.seen.clear()
    with served(kind, tls) as address:
        yield urlsplit(address).port or 0

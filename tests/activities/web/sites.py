"""Real HTTP servers that behave as the web does, and as it should not."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

PAGE = (
    b"<!doctype html><html><head><title>Tea &amp; law</title></head><body>"
    b"<p>Every invoice must be kept for ten years.</p></body></html>"
)
Answer = Callable[["Site"], None]


class Site(BaseHTTPRequestHandler):
    """Answers by path; everything it was asked is in `seen`."""

    answers: ClassVar[dict[str, Answer]] = {}
    seen: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        Site.seen.append((self.path, dict(self.headers.items())))
        answer = self.answers.get(urlsplit(self.path).path, lambda site: site.give(PAGE))
        try:
            answer(self)
        except OSError:
            self.close_connection = True

    def give(
        self, body: bytes, media: str = "text/html", status: int = 200, **headers: object
    ) -> None:
        self.send_response(status)
        if media:
            self.send_header("Content-Type", media)
        if not {"content_length", "transfer_encoding"} & set(headers):
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def move(self, where: str) -> None:
        self.give(b"", status=302, location=where)

    def asked(self) -> dict[str, str]:
        """The query."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


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
    """Fifty megabytes, packed into fifty kilobytes."""
    site.give(gzip.compress(bytes(50_000_000)), "text/plain", content_encoding="gzip")


def results(site: Site) -> None:
    """SearXNG's answer."""
    hits = [
        {"title": f"Tea {n}", "url": f"https://tea.example/{n}", "content": site.asked()["q"]}
        for n in range(30)
    ]
    if site.asked().get("format") != "json":
        site.give(b"no", status=403)
    site.give(json.dumps({"query": "tea", "results": hits}).encode(), "application/json")


@contextmanager
def serving(
    answers: dict[str, Answer] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """A server on 127.0.0.1; gives its port."""
    kind = type("Served", (Site,), {"answers": answers or {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    Site.seen.clear()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()

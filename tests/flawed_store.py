"""A proxy before an object store, which a test has fail at a chosen request."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Flaw = Literal["half", "before", "after", "reset", "full"] | tuple[int, str]
"""Hang with half of the body sent on, before it or after the store's answer; cut the connection;
take only empty objects; or answer with a status and an error code of S3."""
SECONDS = 60
_PER_HOP = {"connection", "transfer-encoding", "content-length"}


@dataclass
class FlawedStore:
    """What the proxy does with requests of a method to paths that contain a word."""

    upstream: str
    endpoint: str = ""
    method: str = "PUT"
    word: str = ""
    flaw: Flaw | None = None
    times: int = 1_000_000
    """How many more requests it meets."""
    compares_bare_versions: bool = False
    """Compare If-Match as Ceph's gateway 16 does: no version in quotes matches."""
    is_met: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def break_requests(
        self, flaw: Flaw, word: str = "", *, method: str = "PUT", times: int
    ) -> None:
        """Have the next requests fail."""
        self.is_met.clear()
        self.flaw, self.word, self.method, self.times = flaw, word, method, times

    def mend(self) -> None:
        self.flaw = None

    def take_flaw(self, method: str, path: str) -> Flaw | None:
        """The flaw that this request meets."""
        if method != self.method or self.word not in path or self.times < 1:
            return None
        self.times -= self.flaw is not None
        return self.flaw


@contextmanager
def flawed_store(upstream: str) -> Iterator[FlawedStore]:
    """A proxy before the store at an endpoint."""
    store = FlawedStore(upstream)

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _forward(self) -> None:
            self.close_connection = True
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            flaw = store.take_flaw(self.command, self.path)
            version = self.headers.get("If-Match")
            if version and store.compares_bare_versions:
                if version.startswith('"'):
                    self._refuse(412, "PreconditionFailed")
                    return
                self.headers.replace_header("If-Match", f'"{version}"')
            if flaw == "reset":
                self.connection.shutdown(socket.SHUT_RDWR)
            elif flaw == "full" and body:
                self._refuse(507, "InsufficientStorage")
            elif isinstance(flaw, tuple):
                self._refuse(*flaw)
            elif flaw == "before":
                self._hang()
            elif flaw == "half":
                self._send_half(body)
            else:
                # A killed client takes no answer.
                with suppress(BrokenPipeError):
                    self._pass_on(body, hang=flaw == "after")

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

        def _hang(self) -> None:
            store.is_met.set()
            store.release.wait(SECONDS)

        def _refuse(self, status: int, code: str) -> None:
            store.is_met.set()
            text = f"<Error><Code>{code}</Code><Message>by the test</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _send_half(self, body: bytes) -> None:
            """Leave the store with a request whose body breaks off."""
            parts = urlsplit(store.upstream)
            with socket.create_connection((parts.hostname, parts.port)) as connection:
                head = f"{self.command} {self.path} HTTP/1.1\r\n{self.headers}".encode()
                connection.sendall(head + body[: len(body) // 2])
                self._hang()

        def _pass_on(self, body: bytes, *, hang: bool) -> None:
            parts = urlsplit(store.upstream)
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            data = answer.read()
            if hang:
                self._hang()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _PER_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            connection.close()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        store.release.set()
        server.shutdown()
        server.server_close()

"""A target for notifications: a real HTTP server that remembers what it received."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """Bodies and headers of all requests, in order."""

    port: int = 0
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers, then 200."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)
    """Requests are answered while it is set."""

    def __post_init__(self) -> None:
        self.answers.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/people?token=abc"

    @property
    def keys(self) -> Counter[str]:
        """Return how often each notification arrived."""
        return Counter(header["idempotency-key"] for header in self.headers)

    def of(self, event: str) -> list[dict[str, Any]]:
        return [body for body in self.bodies if body["event"] == event]


@contextmanager
def receiver(*statuses: int) -> Iterator[Receiver]:
    webhook = Receiver(statuses=list(statuses))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                status = webhook.statuses.pop(0) if webhook.statuses else 200
                webhook.bodies.append(json.loads(raw))
                webhook.headers.append({name.lower(): text for name, text in self.headers.items()})
            webhook.answers.wait(60)
            with suppress(OSError):  # the client may be dead
                self._answer(status)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{webhook.url}&moved=yes")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing, to keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhook.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield webhook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

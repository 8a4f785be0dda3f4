"""A real HTTP server for a test, in its own thread; the test decides the answers."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Base of handlers that define `do_GET` or `do_POST`."""

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

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

    def give_json(self, value: object, status: int = 200, **headers: object) -> None:
        self.give(json.dumps(value).encode(), "application/json", status, **headers)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@contextmanager
def served(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on 127.0.0.1; gives the address, such as `http://127.0.0.1:8000`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

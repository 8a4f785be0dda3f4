"""The rehearsal model over real HTTP, for tests in other processes and for people.

`python -m rehearsal.server --port 8300`, then
`OPENAI_BASE_URL=http://127.0.0.1:8300/v1`.
"""

import argparse
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rehearsal import wire
from rehearsal.rehearsal_model import rehearse
from rehearsal.rehearsal_transport import EVENTS, JSON, MODELS


@dataclass
class ModelServer:
    """A model behind a port of this machine, as a context manager.

    Args:
        model: Answers the requests; called from one thread per connection.
        delay: Seconds before each answer.
        port: Port to listen on; 0 for a free one.
        key: Returns the currently accepted key; None accepts any.
    """

    model: wire.Model
    delay: float = 0.0
    port: int = 0
    key: Callable[[], str] | None = None

    def __post_init__(self) -> None:
        self.closing = threading.Event()
        self._http = _HttpServer(("127.0.0.1", self.port), _ModelServerHandler)
        self._http.owner = self
        self.port = self._http.server_address[1]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def serve(self) -> None:
        """Answer requests until closed."""
        self._http.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def on_request(self, incoming: wire.WireRequest) -> None:
        """Called with each request before its answer, also for clients that are then killed."""

    def __enter__(self) -> "ModelServer":
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._thread.join()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: ModelServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that were killed or abandoned their call."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _ModelServerHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HttpServer

    def setup(self) -> None:
        super().setup()
        # Small events must not wait for each other's acknowledgement.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._send_model_answer(200, JSON, MODELS)
        else:
            self._send_failure(wire.Failure(404, f"There is nothing at {self.path}."))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.path.endswith("/chat/completions"):
            self._send_failure(wire.Failure(404, f"There is nothing at {self.path}."))
            return
        incoming = wire.parse_wire_request(body)
        if isinstance(incoming, wire.Failure):
            self._send_failure(incoming)
            return
        owner = self.server.owner
        if owner.key and self.headers.get("authorization") != f"Bearer {owner.key()}":
            self._send_failure(wire.Failure(401, "Incorrect API key provided."))
            return
        owner.on_request(incoming)
        answer = wire.answer_wire_request(owner.model, incoming.request)
        if owner.delay and owner.closing.wait(owner.delay):
            return
        if isinstance(answer, wire.Failure):
            self._send_failure(answer)
        elif isinstance(answer, wire.Reply) and not incoming.streams:
            self._send_model_answer(200, JSON, wire.encode_wire_reply(incoming, answer))
        else:
            self._stream_answer(incoming, answer)

    def _stream_answer(self, incoming: wire.WireRequest, answer: wire.Answer) -> None:
        self.send_response(200)
        for name, value in (EVENTS if incoming.streams else JSON).items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        closing = self.server.owner.closing
        if isinstance(answer, wire.Hang):
            closing.wait()
        if isinstance(answer, wire.Hang | wire.Failure):
            self.close_connection = True
            return
        reply = answer if isinstance(answer, wire.Reply) else answer.reply
        is_single = not incoming.streams
        pieces = (
            [wire.encode_wire_reply(incoming, reply)]
            if is_single
            else wire.stream_wire_reply(incoming, reply)
        )
        if isinstance(answer, wire.Reply):
            self._send_chunks(pieces, end=True)
            return
        content = b"".join(pieces)
        middle = len(content) // 2
        self._send_chunks([content[:middle]])
        # Closing without the last chunk marks the body as incomplete.
        self.close_connection = True
        if isinstance(answer, wire.Stall) and not closing.wait(answer.seconds):
            self._send_chunks([content[middle:]], end=True)

    def _send_chunks(self, pieces: list[bytes], *, end: bool = False) -> None:
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        if end:
            self.wfile.write(b"0\r\n\r\n")

    def _send_failure(self, failure: wire.Failure) -> None:
        self._send_model_answer(failure.status, JSON | failure.headers, failure.body)

    def _send_model_answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def serve_rehearsal_model() -> None:
    parser = argparse.ArgumentParser(description="Serve the rehearsal model.")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    server = ModelServer(rehearse, options.delay, options.port)
    print(f"listening on {server.base_url}", flush=True)
    try:
        server.serve()
    except KeyboardInterrupt:
        server.close()


if __name__ == "__main__":
    serve_rehearsal_model()

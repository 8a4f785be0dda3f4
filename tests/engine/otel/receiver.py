"""A receiver of OpenTelemetry traces and metrics: OTLP over HTTP, kept in memory."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.http_server import Handler


@dataclass(frozen=True)
class Span:
    """A span as received; ids in hexadecimal, times in nanoseconds since 1970."""

    trace: str
    id: str
    parent: str
    """Empty for the first span of a trace."""
    name: str
    begun: int
    ended: int
    failed: bool
    attributes: dict[str, Any]


class Receiver:
    """Receives what is exported to `address` while it is open."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        """Every request, decompressed."""
        self._lock = threading.Lock()
        self._traces: list[ExportTraceServiceRequest] = []
        self._metrics: list[ExportMetricsServiceRequest] = []
        receiver = self

        class Collector(Handler):
            def do_POST(self) -> None:
                body = self.body()
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(self.path, body)
                self.give(b"", "")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)

    @property
    def address(self) -> str:
        """Value for OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, body: bytes) -> None:
        with self._lock:
            self.bodies.append(body)
            if path == "/v1/traces":
                self._traces.append(ExportTraceServiceRequest.FromString(body))
            elif path == "/v1/metrics":
                self._metrics.append(ExportMetricsServiceRequest.FromString(body))

    def spans(self) -> list[Span]:
        """Return all spans so far, by start time."""
        with self._lock:
            all_spans = [
                Span(
                    span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name,
                    span.start_time_unix_nano, span.end_time_unix_nano, span.status.code == 2,
                    {each.key: _plain(each.value) for each in span.attributes},
                )
                for request in self._traces
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]  # fmt: skip
        return sorted(all_spans, key=lambda span: span.begun)

    def metrics(self) -> dict[str, list[dict[str, Any]]]:
        """Return the attributes of each received series, by name."""
        points: dict[str, list[dict[str, Any]]] = {}
        with self._lock:
            for request in self._metrics:
                for resource in request.resource_metrics:
                    for scope in resource.scope_metrics:
                        for metric in scope.metrics:
                            kind = metric.WhichOneof("data")
                            for point in getattr(metric, kind).data_points if kind else ():
                                entry = {each.key: _plain(each.value) for each in point.attributes}
                                points.setdefault(metric.name, []).append(entry)
        return points


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None

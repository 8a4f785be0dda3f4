"""Export of the SDK's metrics and our counters to Prometheus or OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from engine import logs
from engine.otel import optional_export
from engine.setup_errors import SetupError
from protocol.short_text import one_line

VARIABLE = "LONGHAUL_METRICS"


@asynccontextmanager
async def metrics_runtime() -> AsyncIterator[Runtime | None]:
    """Yield the worker's runtime with its one metrics exporter; None without metrics.

    Raises:
        SetupError: LONGHAUL_METRICS is invalid, or OpenTelemetry is not installed.
    """
    prometheus = _prometheus_runtime()
    if prometheus or not optional_export.exports_metrics():
        yield prometheus
        return
    async with optional_export.load_otlp_export().otlp_metrics_runtime() as runtime:
        yield runtime


def _prometheus_runtime() -> Runtime | None:
    """Return the runtime that serves `/metrics` at LONGHAUL_METRICS (`host:port`); None if unset.

    Raises:
        SetupError: The variable is not an address, or the address is in use.
    """
    address = os.environ.get(VARIABLE, "").strip()
    if not address:
        return None
    try:
        config = PrometheusConfig(bind_address=address, counters_total_suffix=True)
        return Runtime(telemetry=TelemetryConfig(logging=logs.NATIVE, metrics=config))
    except (RuntimeError, ValueError) as error:
        reason = one_line(str(error), 200)
        raise SetupError(
            f"{VARIABLE}={address}: {reason}; expected an address that is free, as 127.0.0.1:9464"
        ) from None

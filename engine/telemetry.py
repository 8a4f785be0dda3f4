"""Where the metrics of Temporal's SDK go, our counters among them: Prometheus, OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from engine import logs
from engine.errors import Unusable
from engine.otel import switch
from protocol.text import one_line

VARIABLE = "LONGHAUL_METRICS"


@asynccontextmanager
async def runtime() -> AsyncIterator[Runtime | None]:
    """The runtime of a worker; None without any metrics. The SDK has one place for them.

    Raises:
        Unusable: LONGHAUL_METRICS cannot be used, or OpenTelemetry is not there.
    """
    made = _prometheus()
    if made or not switch.metrics():
        yield made
        return
    async with switch.pipeline().sdk_metrics() as found:
        yield found


def _prometheus() -> Runtime | None:
    """The runtime that serves `/metrics` at LONGHAUL_METRICS, `host:port`; None without it.

    Raises:
        Unusable: the variable is no address, or it is taken.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return None
    try:
        config = PrometheusConfig(bind_address=given, counters_total_suffix=True)
        return Runtime(telemetry=TelemetryConfig(logging=logs.NATIVE, metrics=config))
    except (RuntimeError, ValueError) as error:
        reason = one_line(str(error), 200)
        raise Unusable(
            f"{VARIABLE}={given}: {reason}; expected an address that is free, as 127.0.0.1:9464"
        ) from None

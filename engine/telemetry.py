"""Metrics of a worker for Prometheus: those of Temporal's SDK, and our counters among them."""

from __future__ import annotations

import os

from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from engine.connection import Unreachable

VARIABLE = "LONGHAUL_METRICS"


def runtime() -> Runtime | None:
    """The runtime that serves `/metrics` at LONGHAUL_METRICS, `host:port`; None without it.

    Raises:
        Unreachable: the variable is no address, or it is taken.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return None
    try:
        config = PrometheusConfig(bind_address=given, counters_total_suffix=True)
        return Runtime(telemetry=TelemetryConfig(metrics=config))
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise Unreachable(
            f"{VARIABLE}={given}: {reason}; expected an address that is free, as 127.0.0.1:9464"
        ) from None

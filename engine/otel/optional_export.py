"""Export of traces and metrics where OpenTelemetry's own variables ask for it.

This module imports nothing of OpenTelemetry, which is an extra.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from temporalio.client import Plugin

from engine.setup_errors import SetupError

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
OURS = "http/protobuf"
_OTLP_EXPORT = "engine.otel.otlp_export"


def exports_traces() -> bool:
    return _is_exported("TRACES")


def exports_metrics() -> bool:
    return _is_exported("METRICS")


def collector_addresses() -> list[str]:
    """Return the addresses that traces and metrics go to."""
    addresses = {
        os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "").strip()
        or os.environ.get(ENDPOINT, "").strip()
        for signal in ("TRACES", "METRICS")
        if _is_exported(signal)
    }
    return sorted(addresses)


def export_client_plugins() -> list[Plugin]:
    """Return plugins with which a client and its workers export; empty without an endpoint.

    Raises SetupError: the extra is not installed, or another protocol is configured.
    """
    plugins: list[Plugin] = (
        load_otlp_export().otlp_export_plugins() if exports_traces() or exports_metrics() else []
    )
    return plugins


def load_otlp_export() -> Any:
    """Load the module `engine.otel.otlp_export`, which imports OpenTelemetry.

    Raises SetupError: see `export_client_plugins`.
    """
    for name in (
        PROTOCOL,
        *(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL" for signal in ("TRACES", "METRICS")),
    ):
        protocol = os.environ.get(name, "").strip()
        if protocol and protocol != OURS:
            raise SetupError(
                f"{name}={protocol}: traces and metrics are sent as {OURS}; unset it, and let "
                f"{ENDPOINT} name the collector's HTTP port, 4318 as a rule"
            )
    try:
        return import_module(_OTLP_EXPORT)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise SetupError(
            f"{ENDPOINT} asks for traces and metrics, but OpenTelemetry is not installed: run "
            ".venv/bin/python -m pip install '.[otel]' in the checkout, or unset the variable "
            "(OTEL_SDK_DISABLED=true does, too)"
        ) from None


@contextmanager
def trace_start_if_exported(kind: str, job: str) -> Iterator[None]:
    """Wrap the start of a job in the first span of its trace."""
    if not exports_traces():
        yield
        return
    with load_otlp_export().start_span(kind, job):
        yield


def flush_optional_exports() -> None:
    """Send outstanding data before the process ends, for a few seconds at most."""
    if loaded := sys.modules.get(_OTLP_EXPORT):
        loaded.flush_exports()


def _is_exported(signal: str) -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip() or "otlp"
    if "otlp" not in exporters.split(","):
        return False
    endpoints = (ENDPOINT, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return any(os.environ.get(name, "").strip() for name in endpoints)

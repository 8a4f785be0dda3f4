"""The checks of `doctor` that concern logs, traces and metrics."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from activities.redaction.credentials import without_credentials
from cli.checks.check_result import CHECK_TIMEOUT, CheckResult
from engine import logs
from engine.otel import optional_export
from engine.setup_errors import SetupError


def check_log_settings() -> CheckResult:
    try:
        return CheckResult("log", True, f"{logs.log_format()}, from {logs.log_level('WARNING')} on")
    except SetupError as error:
        return CheckResult("log", False, f"{error}: no worker starts")


def check_collectors() -> CheckResult:
    name, addresses = "traces and metrics", optional_export.collector_addresses()
    try:
        if addresses:
            optional_export.load_otlp_export()
        for address in addresses:
            url = urlsplit(address)
            port = url.port or (443 if url.scheme == "https" else 80)
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError("expected an address such as http://127.0.0.1:4318")
            socket.create_connection((url.hostname, port), CHECK_TIMEOUT.total_seconds()).close()
    except (OSError, ValueError) as error:
        return CheckResult(
            name, False, f"{without_credentials(address)} is not reached ({error}): they are lost",
            f"start the collector, or correct or unset {optional_export.ENDPOINT}",
        )  # fmt: skip
    targets = f"to {', '.join(map(without_credentials, addresses))}"
    return CheckResult(name, True, targets if addresses else "not exported")

"""Temporal's address and the client for it."""

import asyncio
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import GrpcCompression

from activities.redaction.credentials import without_credentials
from engine import logs
from engine.codec import data_converter
from engine.otel import optional_export
from engine.program_names import KEEP_DEMO
from engine.setup_errors import SetupError
from protocol.short_text import one_line

DEFAULT_ADDRESS = "localhost:7233"
CONNECT_SECONDS = 5.0
ROOT_MARK = "/root:"
"""What precedes the id of the workspaces root in the identity of a worker."""
MAX_ERROR_CHARACTERS = 200
"""Most characters of an SDK error in a message."""
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}


async def connect_client(address: str | None = None, *, runtime: Runtime | None = None) -> Client:
    """Connect a client with Temporal's own configuration: profile, TOML file, environment.

    Args:
        address: `host:port`, in place of the configured one.
        runtime: The SDK's runtime, which exports metrics; None for one without metrics.

    Raises:
        SetupError: bad configuration or keys, traces that cannot be exported, no server within 5
            seconds, or a refused connection.
    """
    options = client_options()
    options |= {
        "data_converter": data_converter(),
        "plugins": optional_export.export_client_plugins(),
    }
    if address is not None:
        options["target_host"] = address
    where = options["target_host"]
    if is_local_temporal_address(where):
        options.setdefault("grpc_compression", GrpcCompression.NONE)
    if "://" in where:  # the SDK accepts some of these, with a warning
        raise SetupError(
            f"Temporal's address is {without_credentials(where)}, expected host:port such as "
            f"{DEFAULT_ADDRESS}; correct TEMPORAL_ADDRESS, or the profile that gives it"
        )
    connecting = Client.connect(**options, runtime=runtime or plain_connection_runtime())
    try:
        return await asyncio.wait_for(connecting, CONNECT_SECONDS)
    except TimeoutError:
        reason = f"no answer within {CONNECT_SECONDS:.0f} s"
    except (RuntimeError, ValueError) as error:
        reason = _connection_reason(str(error))
    # The SDK's error does not always mention TLS.
    by = ", asked by TLS, as the configuration or an API key demands" if options.get("tls") else ""
    raise SetupError(
        f"no Temporal server at {where} ({reason}{by}); start one with `{KEEP_DEMO}` or "
        "`temporal server start-dev`, or set TEMPORAL_ADDRESS"
    )


def is_local_temporal_address(address: str) -> bool:
    """Return whether `host:port` is this machine, where compression costs more than it saves."""
    return address.rpartition(":")[0].strip("[]") in _LOCAL_HOSTS


@cache
def plain_connection_runtime() -> Runtime:
    """Return the runtime without metrics, one per process: each runtime starts its own threads."""
    return Runtime(telemetry=TelemetryConfig(logging=logs.NATIVE))


def client_options() -> dict[str, Any]:
    """Return arguments for `Client.connect`; `target_host` and `namespace` are always present.

    Raises SetupError: the configuration cannot be read.
    """
    # The SDK treats a missing file like an empty one.
    if (file := os.environ.get("TEMPORAL_CONFIG_FILE")) and not Path(file).exists():
        raise SetupError(
            f"Temporal's client configuration: TEMPORAL_CONFIG_FILE names {file}, and there is no "
            "such file"
        )
    try:
        loaded: Mapping[str, Any] = ClientConfig.load_client_connect_config(
            os.environ.get("TEMPORAL_PROFILE")
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise SetupError(
            f"Temporal's client configuration: {one_line(str(error), MAX_ERROR_CHARACTERS)}"
        ) from None
    return {"target_host": DEFAULT_ADDRESS, "namespace": "default", **loaded}


def task_queue() -> str:
    """Return the task queue that starters and workers share."""
    return os.environ.get("LONGHAUL_TASK_QUEUE") or "longhaul"


def _connection_reason(text: str) -> str:
    """Return the part of the SDK's connection error that a person can act on."""
    known = {
        "Connection refused": "connection refused",
        "dns error": "the host name cannot be resolved",
        "404": "something else answers there",
        "invalid peer certificate": "its certificate is not accepted",
        "InvalidContentType": "it speaks no TLS",
        "Unauthenticated": "the credentials were refused",
        "PermissionDenied": "the credentials were refused",
    }
    return next(
        (plain for key, plain in known.items() if key in text), one_line(text, MAX_ERROR_CHARACTERS)
    )

"""The embedded Temporal server: the real one in its development mode.

The demo, the tests and the benchmarks use it. A deployment brings its own server.
"""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import GrpcCompression

from engine.codec import data_converter
from engine.connection import plain_connection_runtime
from engine.free_ports import free_port
from engine.otel import optional_export
from engine.setup_errors import SetupError
from protocol.search_attribute_names import NAMES
from protocol.short_text import one_line

FLAGS = (
    # By default the development server reads its transfer queue 20 times a second, which more
    # than doubles the time of a step (36 ms becomes 87 ms).
    *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.transferProcessorMaxPollHostRPS=5000"),
    # One process serves all tasks. Four partitions, the default, forward tasks to each other, which
    # takes longer: 0.6 to 0.9 s for a short job instead of 0.4 s.
    *("--dynamic-config-value", "matching.numTaskqueueReadPartitions=1"),
    *("--dynamic-config-value", "matching.numTaskqueueWritePartitions=1"),
    # A cancelled activity ends at once, without waiting for its next heartbeat.
    *("--dynamic-config-value", "frontend.WorkerCommandsEnabled=true"),
    *("--dynamic-config-value", "system.enableCancelActivityWorkerCommand=true"),
    # The banner would go to our standard output.
    *("--output", "none"),
)
DATABASE_FLAGS = (
    # A transaction is then one write without a disk sync; a kill still loses nothing.
    *("--sqlite-pragma", "journal_mode=WAL"),
    *("--sqlite-pragma", "synchronous=NORMAL"),
)
_STARTUP = timedelta(seconds=30)
"""Seconds for the server to start; it needs less than one, except on a machine busy with tests."""


@dataclass(frozen=True)
class DevelopmentServer:
    """A running embedded server."""

    client: Client
    address: str
    """`host:port` for clients."""
    ui: str | None


def find_temporal_binary() -> Path:
    """Return the Temporal binary of this Python environment, else the one in PATH.

    Raises SetupError: there is no binary.
    """
    # Not resolved, since a virtual environment's interpreter is a link to another folder.
    beside = Path(sys.executable).parent / "temporal"
    if beside.is_file():
        return beside
    if on_path := shutil.which("temporal"):
        return Path(on_path)
    raise SetupError(
        f"the temporal binary is neither in {beside.parent} nor on PATH; run `make setup`"
    )


@asynccontextmanager
async def development_server(
    *,
    port: int | None = None,
    ui_port: int | None = None,
    ui: bool = True,
    database: Path | None = None,
    metrics_port: int | None = None,
) -> AsyncIterator[DevelopmentServer]:
    """Run an embedded server with our search attributes and the namespace `default`.

    Args:
        port: Preferred port of the server; another is chosen when it is in use. None for any.
        ui_port: Preferred port of the Web UI, likewise.
        ui: Whether to serve the Web UI.
        database: SQLite file that outlives the server; None keeps data in memory.
        metrics_port: Where it serves its own metrics; None for any port.

    Raises:
        SetupError: no binary, bad keys, unusable exports of traces, or a server that did not start.
    """
    # Loads the worker of the SDK, which the commands that only look for the binary do without.
    from temporalio.testing import WorkflowEnvironment  # noqa: PLC0415

    binary, converter = find_temporal_binary(), data_converter()
    plugins = optional_export.export_client_plugins()
    port = free_port(port)
    ui_port = free_port(ui_port, avoid=port) if ui else None
    database_flags = DATABASE_FLAGS if database else ()
    metrics_flags = ("--metrics-port", str(metrics_port)) if metrics_port else ()
    if database is not None:
        database.parent.mkdir(parents=True, exist_ok=True)
    try:
        environment = await WorkflowEnvironment.start_local(
            data_converter=converter,
            port=port,
            ui=ui,
            ui_port=ui_port,
            search_attributes=[SearchAttributeKey.for_keyword(name) for name in NAMES],
            dev_server_existing_path=str(binary),
            dev_server_database_filename=str(database) if database else None,
            dev_server_log_level="error",
            dev_server_extra_args=(*FLAGS, *database_flags, *metrics_flags),
            dev_server_startup_timeout=_STARTUP,
            runtime=plain_connection_runtime(),
        )
    except RuntimeError as error:
        reason = one_line(str(error), 300)
        raise SetupError(f"the embedded Temporal server did not start: {reason}") from None
    address = f"127.0.0.1:{port}"
    async with environment:
        # Unlike other clients, the test environment's own client turns an AssertionError in
        # workflow code into a failed workflow.
        client = await Client.connect(
            address,
            data_converter=converter,
            plugins=plugins,
            runtime=plain_connection_runtime(),
            grpc_compression=GrpcCompression.NONE,
        )
        yield DevelopmentServer(client, address, f"http://localhost:{ui_port}" if ui else None)

"""The worker process: it serves until a signal stops it, then drains."""

import asyncio
import gc
import importlib
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NoReturn

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.common import MetricMeter
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from config.agent_files import load_agent
from config.layers import configuration_layers
from config.schema.agent import ConfigError
from config.team_files import load_teams
from engine import alive, health, logs, schedules, waiting_jobs
from engine.connection import connect_client, task_queue
from engine.deployment import version_label, worker_deployment
from engine.exit_codes import CANNOT_START, FAILED, INTERRUPTED
from engine.otel import optional_export
from engine.program_names import name_running_program
from engine.root_location import check_root_writable, open_workspaces_root, workspaces_root
from engine.service import build_worker
from engine.setup_errors import SetupError
from engine.supervisor import SUPERVISED
from protocol.short_text import one_line

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
FILES = 8192
"""Open files that suffice for a worker with all slots in use."""
PUSH_SECONDS = 5.0
"""Seconds that a stopping worker spends on outstanding pushes to remotes."""


def exit_worker_process(code: int) -> NoReturn:
    """Flush the output and end the process immediately with this exit code.

    The SDK's native part can abort the interpreter while it exits (temporalio/sdk-python#300) and
    so turn success into a failure code; `os._exit` skips that.
    """
    optional_export.flush_optional_exports()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream:  # None if it was closed before the start
                stream.flush()
        except (OSError, ValueError):  # the pipe's reader has gone
            continue
    os._exit(code)


def run_worker_process() -> NoReturn:
    """Run a worker until SIGINT or SIGTERM, then exit the process."""
    try:
        logs.set_up_logging()
        asyncio.run(serve_worker_process())
    except (SetupError, ConfigError) as error:
        text = name_running_program(f"error: {error}")
        print(logs.log_line(text, "ERROR"), file=sys.stderr)
        exit_worker_process(CANNOT_START)
    except KeyboardInterrupt:  # there was nothing to drain yet
        exit_worker_process(INTERRUPTED)
    except Exception:
        logging.exception("the worker failed")
        exit_worker_process(FAILED)
    exit_worker_process(0)


async def serve_worker_process() -> None:
    """Serve jobs until a signal, then let running steps end; other workers take over the rest.

    Raises:
        SetupError: the workspaces root, the worker's version, Temporal's server or namespace, or an
            address to serve at is unusable.
        ConfigError: a folder of LONGHAUL_CONFIG, the address of a store or graph, or a tool is
            invalid.
    """
    version = worker_deployment()
    _raise_file_limit()
    configuration_layers()
    load_teams()
    check_root_writable(workspaces_root())
    _check_store_address()
    async with metrics_runtime() as runtime:
        meter = runtime.metric_meter if runtime else None
        await _serve_until_stopped(await connect_client(runtime=runtime), version, meter)


def _check_store_address() -> None:
    """Check the address only: waiting cannot fix a wrong one, but a server may come up later.

    Raises ConfigError: the address of the store is invalid, or its driver is missing.
    """
    if os.environ.get("LONGHAUL_STORE_URL"):
        from activities.stores import relational_store, store_errors  # noqa: PLC0415 - loads the database library

        try:
            relational_store.check_relational_store_address()
        except store_errors.StoreUnavailableError as error:
            raise ConfigError(str(error)) from None


async def _check_worker_namespace(client: Client) -> None:
    """Check the namespace early: the SDK does so in the running worker, with a stack trace."""
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace), retry=True
        )
    except RPCError as error:
        if error.status == RPCStatusCode.UNIMPLEMENTED:
            return
        raise SetupError(
            f"the namespace {client.namespace} cannot be used ({' '.join(error.message.split())}); "
            "set TEMPORAL_NAMESPACE to one that exists and that the credentials are for"
        ) from None


async def _serve_until_stopped(
    client: Client, version: WorkerDeploymentConfig | None, meter: MetricMeter | None
) -> None:
    await _check_worker_namespace(client)
    # Import late: loading all activities takes seconds, wasted if the server is missing.
    from activities.tool_catalogue import EXTENSIONS  # noqa: PLC0415

    for extension in EXTENSIONS:
        extension.check_environment()
    root = open_workspaces_root(workspaces_root())
    worker = build_worker(client, root=root, deployment=version)
    # Loaded modules stay for good. Scanning them at every full collection would pause all jobs
    # for a good part of a second.
    gc.freeze()
    gc.enable()
    # Import by name and late, like all activities (`engine.service`).
    pushes = importlib.import_module("activities.job.checkpoint_push").PUSHES
    pushes.push_leftovers(root)
    stop = asyncio.Event()
    _handle_stop_signals(stop)
    ready = partial(health.readiness_problem, worker, client, root, stop)
    async with (
        health.serve_health(ready),
        worker,
        waiting_jobs.waiting_gauge(client, meter),
        alive.send_beats(client, ready),
    ):
        await schedules.schedule_digests(client, task_queue())
        ready_line = (
            f"worker ready: task queue {task_queue()}, {version_label(version)}"
            f"workspaces {workspaces_root()}, "
            f"model endpoint {_describe_default_model()}"
        )
        try:
            await asyncio.to_thread(health.check_agents)
            print(logs.log_line(ready_line), flush=True)
        except ConfigError as error:
            print(logs.log_line(f"worker not ready: {error}", "WARNING"), file=sys.stderr)
        await stop.wait()
        print(logs.log_line("worker draining: running steps end, then it stops"), flush=True)
    await asyncio.to_thread(pushes.flush, PUSH_SECONDS)


def _describe_default_model() -> str:
    # Import late, as above.
    from activities.model.providers import describe_provider  # noqa: PLC0415

    try:
        return describe_provider(load_agent("generalist").model)
    except ConfigError:  # Other agents may do.
        return "unknown, since the agent generalist cannot be loaded"


def _raise_file_limit() -> None:
    """Raise the limit of open files: a thousand connections for model calls need more than the
    usual 1,024."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    if allowed != resource.RLIM_INFINITY and allowed < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))


def _handle_stop_signals(stop: asyncio.Event) -> None:
    """Handle stop signals: the first one drains, a second one exits at once."""

    def on_signal() -> None:
        if stop.is_set():
            print(logs.log_line("worker left without draining", "WARNING"), file=sys.stderr)
            exit_worker_process(INTERRUPTED)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal)
    if os.environ.get(SUPERVISED):
        # Nothing is ever written there: it becomes readable when the supervisor ends.
        loop.add_reader(sys.stdin.fileno(), _stop_with_supervisor, loop, stop)


def _stop_with_supervisor(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    loop.remove_reader(sys.stdin.fileno())
    stop.set()


VARIABLE = "LONGHAUL_METRICS"


@asynccontextmanager
async def metrics_runtime() -> AsyncIterator[Runtime | None]:
    """Yield the worker's runtime with its one metrics exporter; None without metrics.

    Raises SetupError: LONGHAUL_METRICS is invalid, or OpenTelemetry is not installed.
    """
    prometheus = _prometheus_runtime()
    if prometheus or not optional_export.exports_metrics():
        yield prometheus
        return
    async with optional_export.load_otlp_export().otlp_metrics_runtime() as runtime:
        yield runtime


def _prometheus_runtime() -> Runtime | None:
    """Return the runtime that serves `/metrics` at LONGHAUL_METRICS (`host:port`); None if unset.

    Raises SetupError: the variable is not an address, or the address is in use.
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

"""The processes under test: a Temporal server and workers, to be killed, frozen and restarted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client

from engine.connection import connect_client
from engine.development import DATABASE_FLAGS, FLAGS, find_temporal_binary
from engine.free_ports import free_port
from engine.setup_errors import SetupError
from protocol.search_attribute_names import NAMES
from tests.buckets import KEYS

REPOSITORY = Path(__file__).parents[2]
WORKER_CONFIG = Path(__file__).parents[1] / "worker_config"
"""Leaves every setting to starts; tests of what they may not set take `shipped_config`."""
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("OPENAI_", "LONGHAUL_", "TEMPORAL_", "OTEL_", "AWS_"))
} | {**KEYS, "LONGHAUL_CONFIG": str(WORKER_CONFIG), "LONGHAUL_HEARTBEAT": "quick"}
"""Our environment without variables that would misdirect a worker, with keys for buckets of tests
and the configuration of the tests' workers.
"""


@dataclass
class TemporalServer:
    """The development server with its data in a file, so that it can be killed and restarted."""

    folder: Path
    returns: bool = True
    """False: it is not restarted, and keeps its data in memory."""
    port: int = field(default_factory=free_port)
    metrics_port: int | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> TemporalServer:
        self.folder.mkdir(parents=True)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        attributes = [part for name in NAMES for part in ("--search-attribute", f"{name}=Keyword")]
        file = ("--db-filename", str(self.folder / "temporal.db"), *DATABASE_FLAGS)
        database = file if self.returns else ()
        metrics = ("--metrics-port", str(self.metrics_port)) if self.metrics_port else ()
        self.process = subprocess.Popen(
            [str(find_temporal_binary()), "server", "start-dev", "--headless", "--ip", "127.0.0.1",
             "--port", str(self.port), "--log-level", "error", *database, *metrics,
             *attributes, *FLAGS],
            stdout=subprocess.DEVNULL, stderr=(self.folder / "server.log").open("a"),
        )  # fmt: skip

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def client(self) -> Client:
        """Return a client as soon as the server answers."""
        async with asyncio.timeout(30):
            while True:
                with suppress(SetupError):
                    return await connect_client(self.address)
                await asyncio.sleep(0.1)


@dataclass
class Worker:
    """A worker process."""

    pid: int
    log: Path

    @property
    def alive(self) -> bool:
        return not self._code.exists()

    @property
    def ready(self) -> bool:
        return self.log.exists() and "worker ready" in self.log.read_text()

    async def until_ready(self) -> None:
        async with asyncio.timeout(60):
            while not self.ready:
                assert self.alive, self.log.read_text()
                await asyncio.sleep(0.02)

    async def left(self) -> int:
        """Its exit code, once it has ended."""
        async with asyncio.timeout(90):
            while self.alive:  # noqa: ASYNC110 - a file tells
                await asyncio.sleep(0.02)
        return int(self._code.read_text())

    @property
    def _code(self) -> Path:
        """Return the file to which the nursery writes it."""
        return self.log.with_suffix(".code")

    def kill(self) -> None:
        """`kill -9`."""
        self._send(signal.SIGKILL)

    def until_gone(self) -> None:
        while self.alive:
            time.sleep(0.001)

    def drain(self) -> None:
        """Ask it to end in good order."""
        self._send(signal.SIGTERM)

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def wake(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        # The id of a process that ended may belong to another one.
        with suppress(ProcessLookupError):
            if self.alive:
                os.kill(self.pid, number)


class Nursery:
    """Makes workers; see `crash.nursery`."""

    def __init__(self, process: subprocess.Popen[str], logs: Path) -> None:
        self._process = process
        self._logs = logs
        self.born: list[Worker] = []

    def worker(self, address: str, root: Path, queue: str, model_url: str, **more: str) -> Worker:
        """Start a worker that serves a task queue on a workspaces root with a model.

        `more` goes into its environment.
        """
        return self.start(queue, environment(address, root, queue, model_url) | more)

    def start(self, name: str, variables: dict[str, str]) -> Worker:
        """Start a worker with this environment; its output goes to a log of this name."""
        log = self._logs / f"{name}-{len(self.born)}.log"
        request = {"environment": variables, "log": str(log)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        worker = Worker(int(self._process.stdout.readline()), log)
        self.born.append(worker)
        return worker


@contextmanager
def nursery(
    logs: Path, more: Mapping[str, str] | None = None, code: Path = REPOSITORY
) -> Iterator[Nursery]:
    """Run a nursery that ends its workers when it ends.

    Args:
        more: Added to its environment.
        code: The checkout whose workers it makes.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.nursery"], cwd=code, env={**CLEAN, **(more or {})},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    worker_nursery = Nursery(process, logs)
    try:
        yield worker_nursery
    finally:
        for worker in worker_nursery.born:
            worker.kill()
        try:
            # The process ends when its input does; a preloaded library cleans up then.
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def environment(address: str, root: Path, queue: str, model_url: str) -> dict[str, str]:
    """Return the environment with which `worker.py` and `starter.py` find everything."""
    return {
        **CLEAN,
        "TEMPORAL_ADDRESS": address,
        "LONGHAUL_WORKSPACES": str(root),
        "LONGHAUL_TASK_QUEUE": queue,
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "none",
    }

"""`worker.py --processes N`: a supervisor of worker processes.

A worker process uses one core. The supervisor starts N of them, restarts one that dies, and drains
all on SIGINT or SIGTERM. It serves their health and the sum of their metrics at the addresses that
a single worker would use.
"""

import asyncio
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import NoReturn

from engine import health, logs
from engine.exit_codes import CANNOT_START, FAILED, INTERRUPTED
from engine.free_ports import free_port
from engine.minimal_http import fetch_http_text, serve_http_text
from engine.setup_errors import SetupError

SAME_EVERYWHERE = "longhaul_jobs_waiting"
"""Gauge that each process reads from the server, so all of them report the same figures."""


class MetricsSum:
    """Sums samples by name and labels.

    Counters and histograms never fall: the last values of an ended process stay in the sum.
    Otherwise Prometheus would take the smaller sum for a reset of the counter.
    """

    def __init__(self) -> None:
        self._comments: dict[str, None] = {}
        self._types: dict[str, str] = {}
        self._samples: dict[int, dict[str, float]] = {}
        self._retired: dict[str, float] = defaultdict(float)

    def update(self, process: int, page: str) -> None:
        """Replace the samples of a process; an empty page changes nothing."""
        samples: dict[str, float] = {}
        for line in page.splitlines():
            if line.startswith("#"):
                self._comments.setdefault(line)
                words = line.split()
                if words[1:2] == ["TYPE"]:
                    self._types[words[2]] = words[3]
            elif line.strip():
                key, _, value = line.rpartition(" ")
                samples[key] = float(value)
        if samples:
            self._samples[process] = samples

    def retire(self, process: int) -> None:
        """Add the counters of an ended process to the sum for good, and drop its gauges."""
        for key, value in self._samples.pop(process, {}).items():
            if self._type_of(key) != "gauge":
                self._retired[key] += value

    def render(self) -> str:
        totals: dict[str, float] = defaultdict(float, self._retired)
        for samples in self._samples.values():
            for key, value in samples.items():
                if key.startswith(SAME_EVERYWHERE):
                    totals[key] = max(totals[key], value)
                else:
                    totals[key] += value
        lines = [
            f"{key} {value:g}" if value != int(value) else f"{key} {int(value)}"
            for key, value in totals.items()
        ]
        by_name: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            by_name[self._family(line)].append(line)
        parts = [line for line in self._comments if line.split()[2] not in by_name]
        for name, lines_of_name in by_name.items():
            parts += [line for line in self._comments if line.split()[2] == name]
            parts += lines_of_name
        return "\n".join(parts) + "\n"

    def _family(self, sample: str) -> str:
        name = sample.split("{", 1)[0].split(" ", 1)[0]
        for suffix in ("", "_bucket", "_sum", "_count", "_total"):
            if (base := name.removesuffix(suffix)) in self._types:
                return base
        return name

    def _type_of(self, sample: str) -> str:
        return self._types.get(self._family(sample), "untyped")


SUPERVISED = "LONGHAUL_SUPERVISED"
"""Set in worker processes, which drain when the supervisor's end of their input closes."""
METRICS = "LONGHAUL_METRICS"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
STEADY_SECONDS = 30.0
"""Lifetime in seconds after which a death no longer counts towards `MAX_QUICK_DEATHS`."""
MAX_QUICK_DEATHS = 5
"""Consecutive deaths, each before `STEADY_SECONDS`, after which the supervisor gives up."""
LONGEST_DELAY = 15.0


@dataclass
class SupervisedWorker:
    """One of the worker processes, across its restarts."""

    number: int
    """Number from 1, shown to people."""
    health_address: str = ""
    metrics_address: str = ""
    process: asyncio.subprocess.Process | None = None
    quick_deaths: int = 0
    has_served: bool = False
    """Whether it once lived for `STEADY_SECONDS`, which shows that its environment is usable."""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None


@dataclass
class Supervisor:
    """Runs the worker processes until they have drained, or until one of them cannot run."""

    command: list[str]
    count: int
    workers: list[SupervisedWorker] = field(init=False)
    metrics: MetricsSum = field(default_factory=MetricsSum)
    exit_code: int = 0

    def __post_init__(self) -> None:
        self.workers = [SupervisedWorker(number) for number in range(1, self.count + 1)]
        self._stop = asyncio.Event()

    async def run(self) -> int:
        """Run until all processes have ended; return the exit code.

        Raises SetupError: an address for health or metrics cannot be used.
        """
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop_workers)
        async with AsyncExitStack() as stack:
            if os.environ.get(health.VARIABLE, "").strip():
                await stack.enter_async_context(
                    health.serve_health(self.readiness_problem, self.health_problem)
                )
            if address := os.environ.get(METRICS, "").strip():
                await stack.enter_async_context(serve_http_text(METRICS, address, self.sum_metrics))
            print(logs.log_line(f"supervisor: {self.count} worker processes"), flush=True)
            await asyncio.gather(*(self._keep_running(worker) for worker in self.workers))
        return self.exit_code

    def stop_workers(self) -> None:
        """Drain every process; on the second call, make them exit at once."""
        if self._stop.is_set():
            self.exit_code = INTERRUPTED
        self._stop.set()
        for worker in self.workers:
            if worker.is_running and worker.process:
                worker.process.send_signal(signal.SIGTERM)

    async def readiness_problem(self) -> str:
        """Return which process cannot serve jobs, and why; empty if all can."""
        return await self._first_problem("/readyz", "not running")

    async def health_problem(self) -> str:
        """Return which running process does not answer, and why; empty if all do."""
        return await self._first_problem("/healthz", "")

    async def sum_metrics(self) -> str:
        """Return the sum of all processes' metrics as Prometheus text."""
        running = [worker for worker in self.workers if worker.is_running]
        pages = await asyncio.gather(
            *(fetch_http_text(worker.metrics_address, "/metrics") for worker in running)
        )
        for worker, (_, page) in zip(running, pages, strict=True):
            self.metrics.update(worker.number, page)
        return self.metrics.render()

    async def _first_problem(self, path: str, if_not_running: str) -> str:
        async def problem_of(worker: SupervisedWorker) -> str:
            if not worker.is_running:
                return if_not_running
            status, page = await fetch_http_text(worker.health_address, path)
            return "" if status == 200 else page or "does not answer"

        problems = await asyncio.gather(*map(problem_of, self.workers))
        return next(
            (
                f"process {worker.number}: {problem}"
                for worker, problem in zip(self.workers, problems, strict=True)
                if problem
            ),
            "",
        )

    async def _keep_running(self, worker: SupervisedWorker) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            code = await self._run_once(worker)
            self.metrics.retire(worker.number)
            if self._stop.is_set():
                break
            lived = time.monotonic() - began
            worker.has_served = worker.has_served or lived >= STEADY_SECONDS
            worker.quick_deaths = 0 if lived >= STEADY_SECONDS else worker.quick_deaths + 1
            cannot_start = code == CANNOT_START and not worker.has_served
            if cannot_start or worker.quick_deaths >= MAX_QUICK_DEATHS:
                self._give_up(worker, code)
                break
            delay = (
                min(LONGEST_DELAY, 2.0 ** (worker.quick_deaths - 1)) if worker.quick_deaths else 0
            )
            _warn_of_supervised_worker(
                f"process {worker.number} ended with {describe_worker_exit(code)}; "
                f"another one begins in {delay:g} s"
            )
            await self._wait_or_stop(delay)

    async def _run_once(self, worker: SupervisedWorker) -> int:
        port = free_port()
        worker.health_address = f"127.0.0.1:{port}"
        worker.metrics_address = f"127.0.0.1:{free_port(avoid=port)}"
        environment = {**os.environ, SUPERVISED: str(worker.number)}
        for variable, address in (
            (health.VARIABLE, worker.health_address),
            (METRICS, worker.metrics_address),
        ):
            if environment.get(variable, "").strip():
                environment[variable] = address
        worker.process = await asyncio.create_subprocess_exec(
            *self.command,
            env=environment,
            # The pipe closes when this process ends, whatever the reason.
            stdin=asyncio.subprocess.PIPE,
            # In its own session, a worker does not receive Ctrl-C from the terminal: it would get a
            # second signal besides ours and exit without draining.
            start_new_session=True,
        )
        if self._stop.is_set():  # the signal came while the process started
            worker.process.send_signal(signal.SIGTERM)
        return await worker.process.wait()

    def _give_up(self, worker: SupervisedWorker, code: int) -> None:
        self.exit_code = CANNOT_START if code == CANNOT_START else FAILED
        _warn_of_supervised_worker(
            f"process {worker.number} ended with {describe_worker_exit(code)} "
            + ("at its start" if code == CANNOT_START else f"{worker.quick_deaths} times in a row")
            + "; its own last lines say why. The others drain"
        )
        if not self._stop.is_set():
            self.stop_workers()

    async def _wait_or_stop(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


def describe_worker_exit(code: int) -> str:
    """Describe an exit code as `code 1` or `SIGKILL`."""
    if code >= 0:
        return f"code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def run_supervisor_process(count: int, leave: Callable[[int], NoReturn]) -> NoReturn:
    """Run the supervisor and exit with its code."""
    logs.set_up_logging()
    try:
        code = asyncio.run(Supervisor([sys.executable, sys.argv[0]], count).run())
    except SetupError as error:
        print(logs.log_line(f"error: {error}", "ERROR"), file=sys.stderr)
        leave(CANNOT_START)
    leave(code)


def _warn_of_supervised_worker(text: str) -> None:
    print(logs.log_line(f"supervisor: {text}", "WARNING"), file=sys.stderr, flush=True)

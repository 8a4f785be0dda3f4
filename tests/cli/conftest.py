"""A real Temporal server and a worker that serves the stand-in job, for the whole session."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.client import Client

from cli.app import main
from cli.jobs.job_view import JobView, view_job
from engine.development import development_server
from engine.service import build_worker
from protocol.payloads import SIGNALS, UPDATE
from tests.cli.stand_in import Other, StandIn

REPOSITORY = Path(__file__).parents[2]
T = TypeVar("T")


def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `starter.py` in a separate process."""
    return subprocess.run(
        [sys.executable, "starter.py", *arguments], cwd=REPOSITORY, timeout=90, check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )  # fmt: skip


def tries() -> Iterator[None]:
    """Yield for up to a minute, to try again until an effect shows: it may be late on a busy
    machine.
    """
    until = time.monotonic() + 60
    while time.monotonic() < until:
        yield
        time.sleep(0.05)


@dataclass
class Engine:
    """The server, and its client on its own event loop."""

    address: str
    client: Client
    loop: asyncio.AbstractEventLoop

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def job(self, job_id: str, instructions: str = "Read the law", **data: Any) -> str:
        """Start a job; return once its first workflow task is done."""
        start_input = {"agent": "generalist", "instructions": instructions, **data}
        queue = data.pop("queue", "longhaul")
        start = self.client.start_workflow("Job", start_input, id=job_id, task_queue=queue)
        self.do(start)
        return job_id

    def signal(self, job_id: str, name: str) -> None:
        self.do(self.client.get_workflow_handle(job_id).signal(name))

    def status(self, job_id: str) -> dict[str, Any]:
        return dict(self.do(self.client.get_workflow_handle(job_id).query("status")))


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Run it on a separate thread, since commands run their own loops in the test's thread."""
    engines: list[Engine] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with (
            development_server(ui=False) as running,
            build_worker(
                running.client,
                task_queue="longhaul",
                workflows=[StandIn, Other],
                activities=[],
            ),
        ):
            engines.append(Engine(running.address, running.client, asyncio.get_running_loop()))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(120)
    yield engines[0]
    engines[0].loop.call_soon_threadsafe(stop.set)
    thread.join(30)


@pytest.fixture
def between_looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Signal a job between the looks of a command that follows it, with the next of the names after
    each look, so that every state is seen before the next.
    """

    def signalled(*names: str) -> None:
        left = iter(["", *names])

        async def signal_and_look(client: Client, job_id: str, **known: Any) -> JobView:
            handle, name = client.get_workflow_handle(job_id), next(left, "")
            if name in SIGNALS:
                await handle.execute_update(UPDATE, args=[name, {}])
            elif name:
                await handle.signal(name)
            return await view_job(client, job_id, **known)

        monkeypatch.setattr("cli.jobs.watch.view_job", signal_and_look)

    return signalled


@dataclass
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line printed for a mistake."""
        lines = self.err.splitlines()
        assert self.code == 2, self
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")


Starter = Callable[..., Ran]


@pytest.fixture
def workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspaces root of this test."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TEMPORAL_UI_ADDRESS", "LONGHAUL_TASK_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "workspaces"
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(folder))
    return folder


@pytest.fixture
def offline(
    workspaces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Starter:
    """Run `starter.py` without a server."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "localhost:1")

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def starter(engine: Engine, offline: Starter, monkeypatch: pytest.MonkeyPatch) -> Starter:
    """Run `starter.py` with the session's server."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", engine.address)
    return offline

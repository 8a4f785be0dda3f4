"""`worker.py --processes N`: several worker processes that look like one."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from engine.development import DevelopmentServer
from engine.free_ports import free_port
from engine.supervisor import MetricsSum, describe_worker_exit
from tests.engine.test_worker_process import REPOSITORY, environment, run
from tests.workflows.tea import page

QUEUE = "supervised"


@dataclass
class Supervised:
    """A running supervisor."""

    process: subprocess.Popen[str]
    log: Path
    health: str
    metrics: str

    @property
    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    async def until_ready(self, count: int) -> None:
        async with asyncio.timeout(60), httpx2.AsyncClient(trust_env=False, timeout=10) as http:
            while True:
                assert self.process.poll() is None, self.log.read_text()
                with suppress(httpx2.HTTPError):
                    answer = await http.get(f"http://{self.health}/readyz")
                    if answer.status_code == 200 and len(self.children) == count:
                        return
                await asyncio.sleep(0.1)

    async def ended(self) -> int:
        async with asyncio.timeout(60):
            while self.process.poll() is None:  # noqa: ASYNC110 - a process tells
                await asyncio.sleep(0.05)
        return self.process.returncode


def begin(log: Path, variables: dict[str, str], count: int) -> subprocess.Popen[str]:
    with log.open("w") as out:
        return subprocess.Popen(
            [sys.executable, "worker.py", "--processes", str(count)],
            cwd=REPOSITORY, env=variables, stdout=out, stderr=out, text=True,
        )  # fmt: skip


@asynccontextmanager
async def supervisor(address: str, folder: Path, count: int) -> AsyncIterator[Supervised]:
    health, metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    variables = environment(
        address,
        folder / "root",
        LONGHAUL_TASK_QUEUE=QUEUE,
        LONGHAUL_HEALTH=health,
        LONGHAUL_METRICS=metrics,
    )
    log = folder / "supervisor.log"
    process = begin(log, variables, count)
    supervised = Supervised(process, log, health, metrics)
    children: list[int] = []
    try:
        await supervised.until_ready(count)
        children = supervised.children
        yield supervised
    finally:
        process.kill()
        process.wait()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def test_a_process_that_is_killed_is_replaced_and_no_job_is_lost(
    running: DevelopmentServer, tmp_path: Path
):
    async with supervisor(running.address, tmp_path, 2) as supervised:
        jobs = [
            await running.client.start_workflow(
                "Job", page(), id=f"supervised-{number}", task_queue=QUEUE, result_type=dict
            )
            for number in range(2)
        ]
        victim = supervised.children[0]
        async with asyncio.timeout(60):
            while not list((tmp_path / "root").glob("supervised-*/plan.md")):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        os.kill(victim, signal.SIGKILL)
        results = await asyncio.gather(*(job.result() for job in jobs))
        assert [result["status"] for result in results] == ["completed"] * 2
        await supervised.until_ready(2)
        assert victim not in supervised.children
        assert "ended with SIGKILL; another one begins" in supervised.log.read_text()
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as http:
            shown = (await http.get(f"http://{supervised.metrics}/metrics")).text
        samples = [line for line in shown.splitlines() if line.startswith("temporal_num_pollers{")]
        assert samples
        assert len(samples) == len({line.rpartition(" ")[0] for line in samples})
        children = supervised.children
        supervised.process.terminate()
        assert await supervised.ended() == 0
        assert not any(map(is_alive, children))
        assert supervised.log.read_text().count("worker draining") == 2


async def test_workers_drain_when_their_supervisor_is_killed(
    running: DevelopmentServer, tmp_path: Path
):
    async with supervisor(running.address, tmp_path, 2) as supervised:
        children = supervised.children
        supervised.process.kill()
        async with asyncio.timeout(30):
            while any(map(is_alive, children)):  # noqa: ASYNC110 - processes tell
                await asyncio.sleep(0.05)
        assert supervised.log.read_text().count("worker draining") == 2


def test_workers_that_cannot_start_end_it_with_code_2(tmp_path: Path):
    ended = run("localhost:1", tmp_path, "--processes", "2")
    assert ended.returncode == 2
    assert "no Temporal server at localhost:1" in ended.stderr
    assert "ended with code 2 at its start" in ended.stderr


@pytest.mark.parametrize("count", ["0", "-1", "two", "1.5", "257", ""])
def test_nonsense_is_refused(tmp_path: Path, count: str):
    ended = run("localhost:1", tmp_path, f"--processes={count}")
    assert ended.returncode == 2
    assert f"{count!r} is no number from 1 to 256" in ended.stderr


PAGE = """# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{{agent="tea pot"}} {calls}
# HELP busy Slots in use.
# TYPE busy gauge
busy {busy}
# HELP longhaul_jobs_waiting Jobs.
# TYPE longhaul_jobs_waiting gauge
longhaul_jobs_waiting{{reason="budget"}} 4
# TYPE seconds histogram
seconds_bucket{{le="1"}} {calls}
seconds_sum 0.5
"""


def test_counters_of_a_process_that_ended_stay_in_the_sum():
    total = MetricsSum()
    total.update(1, PAGE.format(calls=3, busy=2))
    total.update(2, PAGE.format(calls=5, busy=1))
    lines = total.render().splitlines()
    assert 'calls_total{agent="tea pot"} 8' in lines
    assert {"busy 3", 'longhaul_jobs_waiting{reason="budget"} 4', "seconds_sum 1"} <= {*lines}
    total.retire(2)
    total.update(2, PAGE.format(calls=1, busy=0))
    lines = total.render().splitlines()
    assert {'calls_total{agent="tea pot"} 9', "busy 2", 'seconds_bucket{le="1"} 9'} <= {*lines}
    assert lines.index("# TYPE busy gauge") + 1 == lines.index("busy 2")


def test_a_page_that_did_not_come_changes_nothing():
    total = MetricsSum()
    total.update(1, PAGE.format(calls=3, busy=2))
    total.update(1, "")
    assert 'calls_total{agent="tea pot"} 3' in total.render()


@pytest.mark.parametrize(("code", "text"), [(1, "code 1"), (-9, "SIGKILL"), (-200, "signal 200")])
def test_exits_are_named(code: int, text: str):
    assert describe_worker_exit(code) == text

"""`python -m benchmarks.endpoint_quota`: many jobs on two workers share an endpoint's quota.

The model refuses what exceeds the quota within any minute. Printed are the share of the quota
that is used until the first job ends, the share of refused calls, and how far apart the ends of the
jobs are, whose work is the same.
"""

import argparse
import asyncio
import tempfile
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from temporalio.client import Client

from benchmarks.benchmark_jobs import Handle, benchmark_job_start
from benchmarks.latent_model import count_latent_model_answers
from benchmarks.option_values import parse_whole_number
from benchmarks.process_usage import python_process
from engine.development import development_server

Known = Literal["set", "headers", "refusals"]
"""How the workers know of the quota."""


@dataclass(frozen=True)
class QuotaShares:
    """What became of the quota. All are shares of one."""

    used: float
    refused: float
    spread: float
    """Between the first and the last end of a job, of the time that the last took."""

    @property
    def line(self) -> str:
        return (
            f"{self.used:.1%} of the quota used, {self.refused:.2%} of the calls refused, "
            f"ends of the jobs within {self.spread:.1%}"
        )


async def measure_quota(
    jobs: int, steps: int, quota: int, delay: float, known: Known = "set"
) -> QuotaShares:
    """Run equal jobs on two workers against a quota of calls a minute."""
    queue = f"quota-{uuid.uuid4().hex[:8]}"
    model = ["-m", "benchmarks.latent_model", "--steps", str(steps), "--delay", str(delay)]
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        settings = Path(folder, "defaults.yaml")
        is_set = f"model: {{requests_per_minute: {quota}}}\n" if known == "set" else "{}\n"
        await asyncio.to_thread(settings.write_text, is_set, encoding="utf-8")
        model += ["--names-quota"] if known == "headers" else []
        temporal = await stack.enter_async_context(development_server(ui=False))
        process = python_process([*model, "--quota", str(quota)], {})
        endpoint = (await stack.enter_async_context(process))[1].split()[-1]
        environment = {
            "TEMPORAL_ADDRESS": temporal.address,
            "LONGHAUL_TASK_QUEUE": queue,
            "LONGHAUL_WORKSPACES": str(Path(folder) / "root"),
            # No start decides on what all jobs share.
            "LONGHAUL_CONFIG": folder,
            "OPENAI_BASE_URL": endpoint,
            "OPENAI_API_KEY": "none",
        }
        for _ in range(2):
            await stack.enter_async_context(python_process(["worker.py"], environment))
        handles = [
            await temporal.client.start_workflow(
                "Job", benchmark_job_start(), id=f"{queue}-{n}", task_queue=queue
            )
            for n in range(jobs)
        ]
        used = await _measure_use(temporal.client, handles, endpoint, quota)
        for handle in handles:
            await handle.result()
        ends = sorted([await _seconds_until_end(handle) for handle in handles])
        answered, refused = await count_latent_model_answers(endpoint)
    return QuotaShares(used, refused / (answered + refused), (ends[-1] - ends[0]) / ends[-1])


async def _measure_use(client: Client, handles: list[Handle], endpoint: str, quota: int) -> float:
    """Return the used share of the quota from the first calls until a job ends."""
    while (before := (await count_latent_model_answers(endpoint))[0]) < 2 * len(handles):  # noqa: ASYNC110 - it counts
        await asyncio.sleep(0.5)
    begun = time.monotonic()
    answered, seconds = before, 0.0
    queue = (await handles[0].describe()).task_queue
    while True:
        ended = await client.count_workflows(
            f"TaskQueue = '{queue}' AND ExecutionStatus != 'Running'"
        )
        if ended.count:
            return (answered - before) / (quota / 60 * seconds)
        answered, seconds = (
            (await count_latent_model_answers(endpoint))[0],
            time.monotonic() - begun,
        )
        await asyncio.sleep(0.5)


async def _seconds_until_end(handle: Handle) -> float:
    description = await handle.describe()
    assert description.close_time
    return (description.close_time - description.start_time).total_seconds()


def benchmark_endpoint_quota() -> None:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.endpoint_quota", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for name, default, text in (
        ("--jobs", 200, "jobs at once"),
        ("--steps", 12, "model calls of the tactical phase of each"),
        ("--quota", 900, "calls a minute"),
        ("--delay", 3, "seconds a call takes"),
    ):
        options.add_argument(name, type=parse_whole_number, default=default, help=text)
    options.add_argument(
        "--known", choices=get_args(Known), default="set", help="how the workers know of it"
    )
    arguments = options.parse_args()
    shares = asyncio.run(
        measure_quota(
            arguments.jobs, arguments.steps, arguments.quota, arguments.delay, arguments.known
        )
    )
    print(shares.line)


if __name__ == "__main__":
    benchmark_endpoint_quota()

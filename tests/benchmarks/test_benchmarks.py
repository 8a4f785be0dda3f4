"""The benchmark runs, and the limits that do not depend on the machine hold."""

from activities.checkpoints import Root
from benchmarks.bare_engine import run_bare_benchmark
from benchmarks.benchmark_jobs import JobRun, run_benchmark_job
from benchmarks.zero_cost_transport import common_prefix
from engine.development import DevelopmentServer

MOST_GROWTH = 1.5


async def test_a_step_costs_few_events_and_bytes_whatever_the_length(
    running: DevelopmentServer, root: Root
) -> None:
    engine = await run_bare_benchmark(running.client, 10, local=False)
    short = await run_benchmark_job(running.client, root, 20)
    longer = await run_benchmark_job(running.client, root, 160)
    growth = _growth(longer)
    for _ in range(5):
        # Other work on this machine counts too, but hardly each time in the same place.
        if growth >= MOST_GROWTH:
            growth = _growth(await run_benchmark_job(running.client, root, 160))
    # The unit: twelve events for two activities without work.
    assert engine.median_events == 12
    for ran in (short, longer):
        assert ran.steps.median_events <= 8
        assert ran.steps.median_bytes <= 2048
    assert abs(longer.steps.median_bytes - short.steps.median_bytes) < 20
    assert longer.runs > 1
    assert longer.prefix >= 0.95
    assert longer.store_bytes < 10_000
    # The cost of a step does not grow with the conversation.
    assert growth < MOST_GROWTH


def _growth(ran: JobRun) -> float:
    return ran.last_tenth_cpu / ran.first_tenth_cpu


def test_common_prefix() -> None:
    assert common_prefix(b"abcdef", b"abcxyz") == 3
    assert common_prefix(b"", b"abc") == 0
    assert common_prefix(b"abc", b"abc") == 3
    long = bytes(10_000)
    assert common_prefix(long + b"a", long + b"b") == len(long)
    assert common_prefix(long[:99] + b"a" + long, long) == 99

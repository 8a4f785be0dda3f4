"""Reading many files: how much helpers keep out of the agent's requests."""

from activities.checkpoints import Root
from engine.development import DevelopmentServer
from tests.benchmarks.delegated_reading import run_delegation_job

FILES = 100


async def test_helpers_keep_the_largest_request_small(
    running: DevelopmentServer, root: Root
) -> None:
    alone = await run_delegation_job(running.client, root, FILES, delegates=False)
    helped = await run_delegation_job(running.client, root, FILES, delegates=True)
    assert helped.largest < alone.largest / 5
    assert helped.largest_of_helpers < alone.largest / 2
    assert helped.calls <= 2 * alone.calls

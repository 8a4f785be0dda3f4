"""The bare engine: the same number of steps, each two activities that do nothing."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

PATIENCE = timedelta(seconds=10)


@activity.defn
async def nothing(number: int) -> int:
    """A regular activity."""
    return number


@activity.defn
async def nothing_local(number: int) -> int:
    """Run as a local one."""
    return number


@workflow.defn
class Bare:
    """`steps` times: a regular activity and another, or a local one in its place."""

    @workflow.run
    async def run(self, steps: int, local: bool) -> int:
        for number in range(steps):
            await workflow.execute_activity(nothing, number, start_to_close_timeout=PATIENCE)
            if local:
                await workflow.execute_local_activity(
                    nothing_local, number, start_to_close_timeout=PATIENCE
                )
            else:
                await workflow.execute_activity(nothing, number, start_to_close_timeout=PATIENCE)
        return steps

"""A workflow that reads the clock, which the sandbox forbids."""

from __future__ import annotations

from temporalio import workflow

from tests.engine import clocked


@workflow.defn
class Reading:
    @workflow.run
    async def run(self) -> float:
        return clocked.now()

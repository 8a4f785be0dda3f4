"""The next version of a job: it counts its turns in the memo."""

from typing import Any

from temporalio import workflow

from protocol.job_record import JobRecord
from workflows.job import Job


class Counting(Job):
    _turns = 0

    def _count(self) -> None:
        self._turns += 1
        workflow.upsert_memo({"turns": self._turns})


@workflow.defn(name="Job")
class Guarded(Counting):
    """Jobs begun without the counter continue without it."""

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        return await super().run(*start)

    async def _advance(self, job: JobRecord) -> None:
        if workflow.patched("turns"):
            self._count()
        await super()._advance(job)


@workflow.defn(name="Job")
class Unguarded(Counting):
    """Jobs begun without the counter cannot be replayed."""

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        return await super().run(*start)

    async def _advance(self, job: JobRecord) -> None:
        self._count()
        await super()._advance(job)

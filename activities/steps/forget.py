"""The `forget` activity."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection
from temporalio import activity

from activities.checkpoints import Root
from activities.checkpoints.forgotten import Record, forgotten
from activities.forgetting.eligibility import Choice
from activities.forgetting.paths import is_there, lost_found, remove_all
from activities.job.activity_context import scheduled_at
from activities.requirements import requirement_store
from activities.runtime.failures import failure, may_pass, typed
from activities.runtime.heartbeats import heartbeats
from activities.stores import traces
from activities.stores.engine import Store
from activities.stores.errors import StoreAway
from config.schema.agent import Problem
from protocol.forgetting import ForgetRequest, ForgetResult

MOST_LINES = 100


class Forgetting:
    """Removes what closed jobs left on a workspaces root, and in the stores if asked."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="forget")
    async def forget(self, request: ForgetRequest) -> ForgetResult:
        """Forget a job, or those that are due. Doing it twice changes nothing."""
        with typed():
            async with heartbeats():
                choice = await asyncio.to_thread(
                    Choice, self._root, activity.client(), scheduled_at()
                )
                if request.job:
                    records = await choice.named_by_person(request.job)
                    await asyncio.to_thread(self._clear, records, request)
                    return await asyncio.to_thread(self._remove, records)
                return await self._due(choice)

    async def _due(self, choice: Choice) -> ForgetResult:
        """One that cannot be forgotten now keeps no other from it."""
        whole = ForgetResult()
        for job in choice.looked_at():
            try:
                done = await asyncio.to_thread(self._remove, await choice.due(job))
            except (Problem, OSError) as problem:
                done = ForgetResult(notes=[f"{job} stays for now: {problem}"])
            whole.jobs = [*whole.jobs, *done.jobs][:MOST_LINES]
            whole.notes = [*whole.notes, *done.notes][:MOST_LINES]
            whole.count += done.count
        return whole

    def _clear(self, records: Sequence[Record], request: ForgetRequest) -> None:
        """The rows of the stores first: where one is away nothing has happened yet."""
        store = Store(self._root)
        if not (request.traces or request.requirements) or not store.is_begun:
            return

        def clear(connection: Connection) -> None:
            for record in records:
                if request.traces:
                    traces.forget(connection, record.job)
                if request.requirements:
                    requirement_store.forget(connection, record.job)

        try:
            store.run(clear)
        except StoreAway as away:
            raise failure("Dependency", str(away), retry=may_pass()) from away

    def _remove(self, records: Sequence[Record]) -> ForgetResult:
        done = ForgetResult()
        for record in records:
            held = forgotten(self._root, record.job)
            if not is_there(self._root, record.job) and (held is None or held.done):
                here = f"the workspaces root {self._root.path} (id {self._root.id})"
                done.notes.append(held.line if held else f"nothing of {record.job} is on {here}")
                continue
            remove_all(self._root, record)
            done.jobs.append(record.job)
            if kept := lost_found(self._root, record.job):
                done.notes.append(f"{kept} stays: files that people had put into {record.job}")
        done.count = len(done.jobs)
        return ForgetResult(jobs=done.jobs[:MOST_LINES], count=done.count, notes=done.notes)

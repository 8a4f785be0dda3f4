"""The `forget` activity."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection
from temporalio import activity

from activities.checkpoints import Root
from activities.checkpoints.forgotten_records import ForgottenJob, find_forgotten_record
from activities.forgetting.eligibility import ForgettingEligibility
from activities.forgetting.job_files import has_job_files, job_lost_found_path, remove_job_paths
from activities.forgetting.remote_jobs import forget_remote_job
from activities.runtime.activity_info import activity_schedule_seconds
from activities.runtime.failures import may_retry_activity, typed_failure
from activities.steps.root_activity import async_step
from activities.stores import stored_traces
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreUnavailableError
from activities.tool_catalogue import EXTENSIONS
from config.schema.agent import ConfigError
from protocol.requests import ForgetRequest, ForgetResult

MAX_LINES = 100


class ForgetActivity:
    """Removes the data of closed jobs from a workspaces root and, if asked, from the stores."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="forget")
    async def forget(self, request: ForgetRequest) -> ForgetResult:
        async with async_step():
            choice = await asyncio.to_thread(
                ForgettingEligibility, self._root, activity.client(), activity_schedule_seconds()
            )
            if request.job:
                records = await choice.named_by_person(request.job)
                await asyncio.to_thread(self._clear_stores, records, request)
                return await asyncio.to_thread(self._remove_jobs, records)
            return await self._forget_due(choice)

    async def _forget_due(self, choice: ForgettingEligibility) -> ForgetResult:
        total = ForgetResult()
        for job in choice.due_candidates():
            try:
                removal = await asyncio.to_thread(self._remove_jobs, await choice.due_records(job))
            except (ConfigError, OSError) as problem:
                removal = ForgetResult(notes=[f"{job} stays for now: {problem}"])
            total.jobs = [*total.jobs, *removal.jobs][:MAX_LINES]
            total.notes = [*total.notes, *removal.notes][:MAX_LINES]
            total.count += removal.count
        return total

    def _clear_stores(self, records: Sequence[ForgottenJob], request: ForgetRequest) -> None:
        """Delete rows of the stores first: if a store is unavailable, nothing has happened yet."""
        store = RelationalStore(self._root)
        if not (request.traces or request.requirements) or not store.may_hold_data:
            return

        def clear_rows(connection: Connection) -> None:
            for record in records:
                if request.traces:
                    stored_traces.forget_traces(connection, record.job)
                if request.requirements:
                    for extension in EXTENSIONS:
                        extension.forget_job(connection, record.job)

        try:
            store.run(clear_rows)
        except StoreUnavailableError as error:
            raise typed_failure("Dependency", str(error), retry=may_retry_activity()) from error

    def _remove_jobs(self, records: Sequence[ForgottenJob]) -> ForgetResult:
        done = ForgetResult()
        for record in records:
            earlier = find_forgotten_record(self._root, record.job)
            is_begun = earlier is not None and not earlier.done
            is_here = is_begun or has_job_files(self._root, record.job)
            if is_here:
                remove_job_paths(self._root, record)
            was_there, notes = forget_remote_job(self._root, record)
            done.notes += notes
            if not is_here and not was_there and not notes:
                root = f"the workspaces root {self._root.path} (id {self._root.id})"
                done.notes.append(
                    earlier.message if earlier else f"nothing of {record.job} is on {root}"
                )
                continue
            done.jobs.append(record.job)
            if remaining := job_lost_found_path(self._root, record.job):
                done.notes.append(f"{remaining} stays: files that people had put into {record.job}")
        done.count = len(done.jobs)
        return ForgetResult(jobs=done.jobs[:MAX_LINES], count=done.count, notes=done.notes)

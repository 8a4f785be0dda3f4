"""Which jobs may be forgotten: closed ones, by Temporal's word, and with a project its jobs."""

from __future__ import annotations

from pathlib import Path

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import Root
from activities.checkpoints.forgotten import Record, every
from activities.checkpoints.owner import Mark, mark_of
from activities.forgetting.paths import is_there
from activities.projects.repository import repository_path
from config.schema.agent import Problem

KINDS = ("Job", "Project")
DAY = 86_400


class Choice:
    """The jobs of a root as their marks tell, each asked after in Temporal when it matters."""

    def __init__(self, root: Root, client: Client, now: int) -> None:
        """
        Args:
            now: Epoch seconds, by the server that closed the jobs.
        """
        self._root, self._client, self._now = root, client, now
        folders = {root.repository("x").parent, repository_path(root, "x").parent}
        found = [mark_of(path) for folder in folders for path in folder.glob("[!.]*.git")]
        self._marks = {mark.job: mark for mark in found if mark}
        self._records = {record.job: record for record in every(root)}

    async def named_by_person(self, job: str) -> list[Record]:
        """A job that a person named, after those that worked for it.

        Raises:
            Problem: it is no job, or it or one that goes with it is not over.
        """
        there = job in self._records or is_there(self._root, job)
        if await self._is_over(job) is None and not there:
            raise Problem(f"there is no job {job!r} and nothing of one on this workspaces root")
        mark = self._marks.get(job)
        if mark and mark.project and await self._is_over(mark.project) is False:
            raise Problem(
                f"job {job} works for project {mark.project}, which is running and may go on from "
                "it; forget it when the project is over"
            )
        children = [one.job for one in self._marks.values() if one.project == job]
        children += [one.job for one in self._records.values() if one.project == job]
        for one in [job, *children]:
            if await self._is_over(one) is False:
                raise Problem(
                    f"job {one} is running; only a closed one can be forgotten (`starter.py "
                    f"cancel {one}` ends it)"
                )
        return [self._record(one) for one in [*dict.fromkeys(children), job]]

    def looked_at(self) -> list[str]:
        """Jobs that may be due: first those of which something may be left, since whoever forgot
        them was killed. Those of a project go with it, never by themselves."""
        kept = [
            mark.job
            for mark in self._marks.values()
            if mark.keep_days is not None
            and not mark.project
            and mark.may_be_in(self._client.namespace)
        ]
        return list(dict.fromkeys([*self._unfinished, *kept]))

    async def due(self, job: str) -> list[Record]:
        """What goes now of one of these: nothing if it was not closed long enough ago.

        Raises:
            Problem: as `asked`.
        """
        if job in self._unfinished:
            return [self._records[job]]
        mark = self._marks[job]
        is_due = await self._age(mark) >= (mark.keep_days or 0) * DAY
        return await self.named_by_person(job) if is_due else []

    @property
    def _unfinished(self) -> list[str]:
        return [record.job for record in self._records.values() if not record.done]

    async def _is_over(self, job: str) -> bool | None:
        """Whether the job is closed; None when Temporal does not know it (any more).

        Raises:
            Problem: it is something else.
        """
        mark = self._marks.get(job)
        if mark and not mark.may_be_in(self._client.namespace):
            raise Problem(
                f"job {job} ran in the namespace {mark.namespace}; a worker of that one can "
                f"forget it, this one serves {self._client.namespace}"
            )
        found = await self._described(job)
        return None if found is None else found.close_time is not None

    async def _age(self, mark: Mark) -> float:
        """Seconds since a job was closed; less than none while it runs."""
        found = await self._described(mark.job)
        if found is None:
            # Temporal keeps closed jobs only so long; the job's last trace then is its repository.
            return self._now - last_change(self._root, mark.job)
        return self._now - found.close_time.timestamp() if found.close_time else -1

    async def _described(self, job: str) -> WorkflowExecutionDescription | None:
        try:
            found = await self._client.get_workflow_handle(job).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return None
            if error.status == RPCStatusCode.INVALID_ARGUMENT:
                raise Problem(f"{job!r} cannot be the id of a job: {error.message}") from None
            raise
        if found.workflow_type not in KINDS:
            raise Problem(f"{job!r} is not a job but a workflow of type {found.workflow_type}")
        return found

    def _record(self, job: str) -> Record:
        if job in self._records:
            return self._records[job]
        mark = self._marks.get(job)
        return Record(job=job, at=self._now, project=mark.project if mark else "")


def last_change(root: Root, job: str) -> float:
    """When something was last put into a job's repository, epoch seconds; 0 without one."""
    repositories = (root.repository(job), repository_path(root, job))
    inside = ("", "journal", "refs/tags", "objects/pack")
    return max((_changed(one / name) for one in repositories for name in inside), default=0)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0

"""Which jobs may be forgotten: those that Temporal reports closed. A project takes its jobs along.

Whether a job is closed is Temporal's word, not the repository's.
"""

from contextlib import suppress
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import Root
from activities.checkpoints.forgotten_records import ForgottenJob, list_forgotten_records
from activities.checkpoints.repository_owner import OwnerMark, read_owner
from activities.forgetting.job_files import has_job_files
from activities.projects.project_repository import project_repository_path
from config.agent_files import load_agent
from config.schema.agent import ConfigError

WORKFLOW_TYPES = ("Job", "Project")
DAY_SECONDS = 86_400


class ForgettingEligibility:
    """The jobs of a root by their marks. Temporal is queried about one when it matters."""

    def __init__(self, root: Root, client: Client, now: int) -> None:
        """
        Args:
            now: Epoch seconds, by the server that closed the jobs.
        """
        self._root, self._client, self._now = root, client, now
        folders = {root.repository("x").parent, project_repository_path(root, "x").parent}
        marks = [read_owner(path) for folder in folders for path in folder.glob("[!.]*.git")]
        self._marks = {mark.job: mark for mark in marks if mark}
        self._records = {record.job: record for record in list_forgotten_records(root)}

    async def named_by_person(self, job: str) -> list[ForgottenJob]:
        """Return the job that a person named, after the jobs that worked for it.

        Raises:
            ConfigError: there is no such job, or it or one of its jobs is not closed.
        """
        exists = job in self._records or has_job_files(self._root, job)
        if await self._is_over(job) is None and not exists:
            raise ConfigError(f"there is no job {job!r} and nothing of one on this workspaces root")
        mark = self._marks.get(job)
        if mark and mark.project and await self._is_over(mark.project) is False:
            raise ConfigError(
                f"job {job} works for project {mark.project}, which is running and may go on from "
                "it; forget it when the project is over"
            )
        children = [mark.job for mark in self._marks.values() if mark.project == job]
        children += await self._list_children(job)
        children += [record.job for record in self._records.values() if record.project == job]
        for related in [job, *children]:
            if await self._is_over(related) is False:
                raise ConfigError(
                    f"job {related} is running; only a closed one can be forgotten (`starter.py "
                    f"cancel {related}` ends it)"
                )
        return [self._job_record(related) for related in [*dict.fromkeys(children), job]]

    def due_candidates(self) -> list[str]:
        """Return the jobs that may be due, half-removed ones first.

        Those were left by a caller that was killed. A project's jobs go with the project, never
        alone.
        """
        expiring = [
            mark.job
            for mark in self._marks.values()
            if mark.keep_days is not None
            and not mark.project
            and mark.may_be_in(self._client.namespace)
        ]
        return list(dict.fromkeys([*self._unfinished_jobs, *expiring]))

    async def due_records(self, job: str) -> list[ForgottenJob]:
        """Return what to remove of a candidate: nothing if it was closed too recently.

        Raises:
            ConfigError: as `named_by_person`.
        """
        if job in self._unfinished_jobs:
            return [self._records[job]]
        mark = self._marks[job]
        is_due = await self._seconds_since_close(mark) >= (mark.keep_days or 0) * DAY_SECONDS
        return await self.named_by_person(job) if is_due else []

    @property
    def _unfinished_jobs(self) -> list[str]:
        return [rec.job for rec in self._records.values() if rec.remote or not rec.done]

    async def _is_over(self, job: str) -> bool | None:
        """Whether the job is closed; None if Temporal does not know it (any more).

        Raises:
            ConfigError: the id belongs to another kind of workflow.
        """
        mark = self._marks.get(job)
        if mark and not mark.may_be_in(self._client.namespace):
            raise ConfigError(
                f"job {job} ran in the namespace {mark.namespace}; a worker of that one can "
                f"forget it, this one serves {self._client.namespace}"
            )
        description = await self._describe_workflow(job)
        return None if description is None else description.close_time is not None

    async def _list_children(self, project: str) -> list[str]:
        """Return the jobs of a project as Temporal lists them: some may have run on other hosts."""
        if not self._remote(project):
            return []
        try:
            quoted = project.replace("\\", "").replace("'", "")
            listed = self._client.list_workflows(f"ParentWorkflowId = '{quoted}'")
            return [each.id async for each in listed if each.workflow_type == "Job"]
        except RPCError:
            return []  # a server without listings

    def _remote(self, job: str) -> str:
        """Return the remote with a job's checkpoints. Another host may have done the work, and
        this one may have nothing of it.
        """
        if mark := self._marks.get(job):
            return mark.remote
        with suppress(ConfigError):
            return load_agent("generalist").workspace.remote or ""
        return ""

    async def _seconds_since_close(self, mark: OwnerMark) -> float:
        """Return the seconds since a job was closed; negative while it runs."""
        description = await self._describe_workflow(mark.job)
        if description is None:
            # Temporal keeps closed jobs for a limited time; after that only the repository is left
            # of a job.
            return self._now - last_job_write_time(self._root, mark.job)
        return self._now - description.close_time.timestamp() if description.close_time else -1

    async def _describe_workflow(self, job: str) -> WorkflowExecutionDescription | None:
        try:
            description = await self._client.get_workflow_handle(job).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return None
            if error.status == RPCStatusCode.INVALID_ARGUMENT:
                raise ConfigError(f"{job!r} cannot be the id of a job: {error.message}") from None
            raise
        if description.workflow_type == "Trial":
            raise ConfigError(
                f"{job} is a trial, which keeps no files; forget its runs, which "
                f"`starter.py show {job}` names"
            )
        if description.workflow_type not in WORKFLOW_TYPES:
            raise ConfigError(
                f"{job!r} is not a job but a workflow of type {description.workflow_type}"
            )
        return description

    def _job_record(self, job: str) -> ForgottenJob:
        if job in self._records:
            return self._records[job]
        mark = self._marks.get(job)
        return ForgottenJob(
            job=job,
            timestamp=self._now,
            project=mark.project if mark else "",
            remote=self._remote(job),
        )


def last_job_write_time(root: Root, job: str) -> float:
    """Return when a job's repository was last written, in epoch seconds; 0 if it has none."""
    repositories = (root.repository(job), project_repository_path(root, job))
    inside = ("", "journal", "refs/tags", "objects/pack")
    return max(
        (_modified_time(repository / name) for repository in repositories for name in inside),
        default=0,
    )


def _modified_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0

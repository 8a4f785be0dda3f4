"""Call a project's activities and child jobs. Nothing here decides anything."""

from typing import Any

from temporalio.exceptions import WorkflowAlreadyStartedError

from protocol import project_requests, project_units
from protocol.handoffs import ProjectLink
from protocol.project_record import ProjectRecord
from protocol.project_start import FORM_SPECS
from protocol.publishing import BranchResult, Publish
from protocol.requests import CheckpointReply
from protocol.trace_requests import StoreTracesReply, StoreTracesRequest, Trace
from workflows.projects import project_status
from workflows.rules import project_budget_shares
from workflows.rules.project_moves import AssignJob
from workflows.runtime import activity_table as table
from workflows.runtime.activity_calls import ActivityCalls
from workflows.runtime.child_jobs import Child, start_child_job

SUMMARY_CHARACTERS = 95
"""The server accepts 400 bytes."""


class ProjectSteps(ActivityCalls):
    """The activities and children of one project."""

    async def prepare_project(
        self, request: project_requests.ProjectPrepareRequest
    ) -> project_requests.ProjectPrepareReply:
        seconds = table.FETCH_SECONDS if request.start.repository else 0
        return await self.run_activity(
            table.PREPARE_PROJECT, request, "start project", seconds=seconds
        )

    async def take_work(
        self, project: ProjectRecord, run: project_units.RunningJob, ended: project_units.EndedJob
    ) -> project_requests.ChildWork:
        """Inspect a child's work."""
        request = project_requests.TakeWorkRequest(
            **_project_fields(project),
            job=ended.job,
            checkpoint=ended.checkpoint,
            folder=project.start.product,
            handoff=run.handoff,
            tokens=project_units.SUMMARY_TOKENS.get(run.role, project_units.OTHERS_TOKENS),
            head=project.head,
            success=project.start.success if run.role == "manager" else [],
            room=project_budget_shares.remaining_share_after(project, run, ended),
        )
        # A tester's commands run on the work it was given, with the tests that it wrote.
        seconds = 300 + 2 * run.handoff.proof_seconds
        summary = f"look into {run.job}"
        return await self.run_activity(table.TAKE_WORK, request, summary, seconds=seconds)

    async def store_handoffs(self, project: ProjectRecord, handed: list[Trace]) -> StoreTracesReply:
        """Store the project's handoffs; the store takes each once."""
        request = StoreTracesRequest(
            root=project.root,
            remote=project.remote,
            agent=f"project ({project.start.form})",
            task=project.title,
            project=project.id,
            traces=handed,
        )
        return await self.run_activity(table.STORE_TRACES, request, "traces of handoffs")

    async def merge_work(
        self, project: ProjectRecord, run: project_units.RunningJob, commit: str, message: str
    ) -> project_requests.MergeReply:
        request = project_requests.MergeRequest(
            **_project_fields(project),
            job=run.job,
            head=project.head,
            commit=commit,
            message=message,
        )
        return await self.run_activity(table.MERGE_WORK, request, f"merge {run.job}")

    async def write_state(self, project: ProjectRecord, units: list[str], why: str) -> str:
        """Write changes into the project's state file; return the commit."""
        request = project_requests.WriteStateRequest(
            **_project_fields(project),
            state=project.state,
            units=[
                {**project_status.project_unit_status(unit, project), "task": unit.task}
                for unit in project.units
                if unit.id in units
            ],
            scope=project.scope,
            why=why[:300],
        )
        reply = await self.run_activity(table.WRITE_PROJECT_STATE, request, why[:150])
        return reply.commit

    async def close_project(
        self, project: ProjectRecord, result: project_units.ProjectResult, *, cancel: bool
    ) -> CheckpointReply:
        request = project_requests.CloseProjectRequest(
            **_project_fields(project),
            head=project.head,
            state=project.state,
            result=result,
            request_cancel=cancel,
        )
        return await self.run_activity(table.CLOSE_PROJECT, request, f"project {result.status}")

    async def publish_project(self, project: ProjectRecord, publish: Publish) -> BranchResult:
        """Push the project's main line as a branch, once."""
        request = project_requests.PublishProjectRequest(
            **_project_fields(project),
            head=project.head,
            publish=publish,
        )
        return await self.run_activity(table.PUBLISH_PROJECT, request, f"publish {publish.branch}")

    async def start_child(
        self, project: ProjectRecord, move: AssignJob, settings: dict[str, object]
    ) -> Child | str:
        """Start a job; return why it could not be started."""
        link = ProjectLink(
            id=project.id,
            root=project.root,
            remote=project.remote,
            folder=project.start.product,
            summary_tokens=project_units.SUMMARY_TOKENS.get(move.role, project_units.OTHERS_TOKENS),
            handoff=move.handoff,
            divided=FORM_SPECS[project.start.form].divided,
        )
        start: dict[str, Any] = {
            "agent": "" if move.fork else move.handoff.to_agent,
            "documents": move.documents,
            "items": move.items,
            "by": project.start.by,
            "team": project.start.team,
            "set": {**project.start.set, **move.set, **settings},
            "fork": move.fork.model_dump() if move.fork else None,
            "project": link.model_dump(mode="json", exclude_defaults=True),
        }
        title = f"{move.handoff.to_agent} on {move.unit}, {project.title}"[:SUMMARY_CHARACTERS]
        try:
            return await start_child_job(
                move.job, {key: value for key, value in start.items() if value}, title
            )
        except WorkflowAlreadyStartedError:
            return (
                f"there is a job {move.job} already, at work since before the project was reset "
                "and for nobody: cancel it. A project is to be cancelled before it is reset"
            )


def _project_fields(project: ProjectRecord) -> dict[str, Any]:
    """Return the fields that each request of a project has."""
    return {"root": project.root, "remote": project.remote, "form": project.start.form}

"""The pipeline: agents in sequence, each continuing the previous one's work."""

from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_start import ProjectStart
from protocol.project_units import EndedJob, RunningJob, Stage
from protocol.short_text import one_line
from workflows.rules import project_moves, project_units


def pipeline_stages(start: ProjectStart) -> list[Stage]:
    """Return the units of a pipeline, one per stage."""
    return [
        Stage(
            id=id_,
            title=one_line(stage.task.strip().partition("\n")[0], 80) or stage.agent,
            number=number,
        )
        for number, (id_, stage) in enumerate(zip(start.stage_ids, start.stages, strict=True))
    ]


def next_stage_moves(project: ProjectRecord) -> list[project_moves.Move]:
    """Return the next moves for the current state."""
    if project.running:
        return [project_moves.WaitForJobs()]
    stage = next((stage for stage in project.stages if stage.status != "completed"), None)
    if stage is None:
        return [project_moves.EndProject("completed")]
    if stage.status == "blocked":
        return [project_moves.EndProject("failed")]
    return [_assign_stage(project, stage)]


def mark_stage_begun(project: ProjectRecord, move: project_moves.AssignJob) -> None:
    """Mark the stage of a new job as in progress and count the attempt."""
    stage = _find_stage(project, move.unit)
    stage.status = "in_progress"
    stage.attempts += 1


def settle_stage_job(
    project: ProjectRecord, run: RunningJob, ended: EndedJob, work: ChildWork | None
) -> str:
    """Record the outcome of a job. Return the commit to merge, or an empty string."""
    stage = _find_stage(project, run.unit)
    project_units.remember_unit_fork_point(stage, ended)
    if work:
        stage.commit = work.commit
    if (why := project_units.unit_work_problems(ended, work)) or work is None:
        _retry_or_block_stage(
            project, stage, project_units.remaining_unit_findings(ended, why, stage.reasons)
        )
        return ""
    return work.commit


def mark_stage_merged(
    project: ProjectRecord, run: RunningJob, conflicts: list[str], commit: str
) -> None:
    """Record the outcome of merging the job's work."""
    stage = _find_stage(project, run.unit)
    if conflicts:
        stage.commit = commit
        _retry_or_block_stage(project, stage, project_units.unit_conflict_findings(conflicts))
    else:
        stage.status, stage.reasons, stage.merged = "completed", [], commit


def _retry_or_block_stage(project: ProjectRecord, stage: Stage, why: list[str]) -> None:
    """Return the stage to `pending`, or block it if no attempt is left."""
    start = project.start.stages[stage.number]
    stage.reasons = why
    # The next attempt expects a pending stage.
    stage.status = "pending"
    if start.on_failure == "block" or stage.attempts >= project.start.attempts:
        project_units.block_project_unit(stage, why)


def _assign_stage(project: ProjectRecord, stage: Stage) -> project_moves.AssignJob:
    starts = project.start.stages
    start = starts[stage.number]
    following = starts[stage.number + 1].agent if stage.number + 1 < len(starts) else ""
    details = {"deadline": start.deadline} if start.deadline else {}
    return project_moves.assign_project_job(
        project,
        stage.id,
        start.agent,
        start.task or "Do your part of the project, as its instructions ask.",
        agent=start.agent,
        commit=stage.commit,
        # A fork's conversation already has the results of earlier stages.
        results=[] if stage.job else project.results[-3:],
        findings=stage.reasons,
        again=stage,
        from_agent=starts[stage.number - 1].agent if stage.number else "project",
        next_agent=following,
        precondition=start.needs,
        postcondition=start.delivers,
        success=start.success,
        on_failure=start.on_failure,
        documents=[] if stage.job else [*project.start.documents, *start.documents],
        items=[] if stage.job else start.items,
        set=start.set,
        **details,
    )


def _find_stage(project: ProjectRecord, unit: str) -> Stage:
    return next(stage for stage in project.stages if stage.id == unit)

"""The pipeline: agents in sequence, each from what the one before handed over. Pure functions."""

from __future__ import annotations

from protocol.project import Ended, ProjectRecord, Running, Stage
from protocol.project_requests import Work
from protocol.project_start import ProjectStart
from protocol.text import one_line
from workflows.moves import (
    Assign,
    End,
    Move,
    Wait,
    assign,
    block,
    collision,
    problems,
    remember,
    still_wrong,
)


def stages(start: ProjectStart) -> list[Stage]:
    """The units of a pipeline."""
    return [
        Stage(
            id=id_,
            title=one_line(stage.task.strip().partition("\n")[0], 80) or stage.agent,
            number=number,
        )
        for number, (id_, stage) in enumerate(zip(start.stage_ids, start.stages, strict=True))
    ]


def next_moves(project: ProjectRecord) -> list[Move]:
    """What the state asks for."""
    if project.running:
        return [Wait()]
    stage = next((stage for stage in project.stages if stage.status != "completed"), None)
    if stage is None:
        return [End("completed")]
    if stage.status == "blocked":
        return [End("failed")]
    return [_move(project, stage)]


def begun(project: ProjectRecord, move: Assign) -> None:
    """Mark what a job is begun for."""
    stage = _stage(project, move.unit)
    stage.status = "in_progress"
    stage.attempts += 1


def settle(project: ProjectRecord, run: Running, ended: Ended, work: Work | None) -> str:
    """Take in what came of a job; the commit that is to be merged, or nothing."""
    stage = _stage(project, run.unit)
    remember(stage, ended)
    if work:
        stage.commit = work.commit
    if (why := problems(ended, work)) or work is None:
        _again(project, stage, still_wrong(ended, why, stage.reasons))
        return ""
    return work.commit


def merged(project: ProjectRecord, run: Running, conflicts: list[str], commit: str) -> None:
    """Take in what came of merging it."""
    stage = _stage(project, run.unit)
    if conflicts:
        stage.commit = commit
        _again(project, stage, collision(conflicts))
    else:
        stage.status, stage.reasons = "completed", []


def _again(project: ProjectRecord, stage: Stage, why: list[str]) -> None:
    """Once more, or no further."""
    start = project.start.stages[stage.number]
    stage.reasons = why
    # What it was before: whoever begins it next finds it as this one did.
    stage.status = "pending"
    if start.on_failure == "block" or stage.attempts >= project.start.attempts:
        block(stage, why)


def _move(project: ProjectRecord, stage: Stage) -> Assign:
    starts = project.start.stages
    start = starts[stage.number]
    following = starts[stage.number + 1].agent if stage.number + 1 < len(starts) else ""
    details = {"deadline": start.deadline} if start.deadline else {}
    return assign(
        project,
        stage.id,
        start.agent,
        start.task or "Do your part of the project, as its instructions ask.",
        agent=start.agent,
        commit=stage.commit,
        # A fork has been told already what those before it said.
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


def _stage(project: ProjectRecord, unit: str) -> Stage:
    return next(stage for stage in project.stages if stage.id == unit)

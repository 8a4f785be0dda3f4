"""The next moves of a project as data, and the handoff that most moves need. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from protocol.handoffs import Handoff, HandoffInputs
from protocol.payloads import Fork
from protocol.project_record import ProjectRecord
from protocol.project_units import Unit
from workflows.rules.project_units import is_unit_conflict

MOST_TASK = 20_000


@dataclass(frozen=True)
class AssignJob:
    """Begin a child job."""

    unit: str
    role: str
    job: str
    handoff: Handoff
    fork: Fork | None = None
    documents: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    set: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WaitForJobs:
    """Nothing can begin before a running job ends."""


@dataclass(frozen=True)
class ParkProject:
    """Only a person can decide how to continue."""

    message: str


@dataclass(frozen=True)
class EndProject:
    """The project is over."""

    status: Literal["completed", "failed"]


Move = AssignJob | WaitForJobs | ParkProject | EndProject


def assign_project_job(
    project: ProjectRecord,
    unit: str,
    role: str,
    task: str,
    *,
    commit: str = "",
    results: Sequence[str] = (),
    findings: Sequence[str] = (),
    agent: str = "",
    again: Unit | None = None,
    **details: Any,
) -> AssignJob:
    """Return a child job for a unit.

    Args:
        commit: Its starting commit; the head if left out.
        results: Results of earlier jobs.
        findings: Findings about this very work.
        again: The unit whose last job to fork, if there is one.
        details: Further fields of the handoff or of the move.
    """
    number = project.begun_jobs.get(f"{unit}-{role}", 0) + 1
    of_move = {name: details.pop(name) for name in ("documents", "items", "set") if name in details}
    details.setdefault("deadline", project.start.deadline)
    handoff = Handoff(
        id=f"{unit}-{role}-{number}",
        from_agent=details.pop("from_agent", "project"),
        to_agent=agent or project.start.agent(role),
        task=task[:MOST_TASK],
        inputs=HandoffInputs(
            commit=commit or project.head,
            base=project.head,
            results=[*results, *(r.line for r in project.remarks if r.unit in ("", unit))],
            findings=list(findings),
            says_all=details.pop("says_all", False) or is_unit_conflict(findings),
            written_tests=details.pop("written_tests", []),
            state=project.state,
        ),
        **details,
    )
    fork = Fork(job=again.job, phase=again.phases or None) if again and again.job else None
    return AssignJob(unit, role, f"{project.id}.{handoff.id}", handoff, fork, **of_move)


def count_project_job(project: ProjectRecord, move: AssignJob) -> None:
    """Count a new job."""
    name = f"{move.unit}-{move.role}"
    project.begun_jobs = {**project.begun_jobs, name: project.begun_jobs.get(name, 0) + 1}
    project.jobs += 1

"""The three forms of a project as one interface: what is next, and what came of it."""

from __future__ import annotations

from typing import Protocol

from protocol.project import EndedJob, ProjectRecord, RunningJob
from protocol.project_forms import FormName
from protocol.project_requests import ChildWork
from workflows import features, groups, pipeline
from workflows.moves import AssignJob, Move


class ProjectForm(Protocol):
    """The functions that each of the three modules has."""

    def next_moves(self, project: ProjectRecord) -> list[Move]:
        """What the state asks for."""

    def mark_begun(self, project: ProjectRecord, move: AssignJob) -> None:
        """Mark what a job is begun for."""

    def settle_job(
        self, project: ProjectRecord, run: RunningJob, ended: EndedJob, work: ChildWork | None
    ) -> str:
        """Take in what came of a job; the commit that is to be merged, or nothing."""

    def mark_merged(
        self, project: ProjectRecord, run: RunningJob, conflicts: list[str], commit: str
    ) -> None:
        """Take in what came of merging it."""


FORM_FIELDS = (
    *("features", "groups", "stages", "scope"),
    *("wave", "planning_attempts", "planned", "finished", "findings"),
)
"""Fields of the record that `settle_job` and `mark_merged` may change: the other ones can
meanwhile, by reports of children and signals of people."""
FORMS: dict[FormName, ProjectForm] = {"features": features, "groups": groups, "pipeline": pipeline}

"""The interface of a project's three forms: the next moves, and the outcomes of jobs."""

from __future__ import annotations

from typing import Protocol

from protocol.project import EndedJob, RunningJob
from protocol.project_forms import FormName
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from workflows import features, groups, pipeline
from workflows.project_moves import AssignJob, Move


class ProjectForm(Protocol):
    """The functions that each of the three modules has."""

    def next_moves(self, project: ProjectRecord) -> list[Move]:
        """Return the next moves for this state."""

    def mark_begun(self, project: ProjectRecord, move: AssignJob) -> None:
        """Record that a job begins."""

    def settle_job(
        self, project: ProjectRecord, run: RunningJob, ended: EndedJob, work: ChildWork | None
    ) -> str:
        """Apply a job's outcome; return the commit to merge, or None."""

    def mark_merged(
        self, project: ProjectRecord, run: RunningJob, conflicts: list[str], commit: str
    ) -> None:
        """Apply the outcome of merging it."""


FORM_FIELDS = (
    *("features", "groups", "stages", "scope"),
    *("wave", "planning_attempts", "planned", "finished", "findings"),
)
"""Fields of the record that `settle_job` and `mark_merged` may change. Meanwhile, reports of
children and signals of people may change the others.
"""
FORMS: dict[FormName, ProjectForm] = {"features": features, "groups": groups, "pipeline": pipeline}

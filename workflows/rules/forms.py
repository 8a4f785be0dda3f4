"""The interface of a project's three forms: the next moves, and the outcomes of jobs."""

from collections.abc import Callable
from dataclasses import dataclass

from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_start import FormName
from protocol.project_units import EndedJob, RunningJob
from workflows.rules import features, groups, pipeline
from workflows.rules.project_moves import AssignJob, Move


@dataclass(frozen=True)
class ProjectForm:
    """The functions that decide for one form."""

    next_moves: Callable[[ProjectRecord], list[Move]]
    """Returns the next moves for this state."""
    mark_begun: Callable[[ProjectRecord, AssignJob], None]
    """Records that a job begins."""
    settle_job: Callable[[ProjectRecord, RunningJob, EndedJob, ChildWork | None], str]
    """Applies a job's outcome; returns the commit to merge, or an empty text."""
    mark_merged: Callable[[ProjectRecord, RunningJob, list[str], str], None]
    """Applies the outcome of merging it: the conflicts and the commit."""


FORM_FIELDS = (
    *("features", "groups", "stages", "scope"),
    *("wave", "planning_attempts", "planned", "finished", "findings", "set_up_report"),
)
"""Fields of the record that `settle_job` and `mark_merged` may change. Meanwhile, reports of
children and signals of people may change the others.
"""
FORMS: dict[FormName, ProjectForm] = {
    "features": ProjectForm(
        features.next_feature_moves,
        features.mark_feature_begun,
        features.settle_feature_job,
        features.mark_feature_merged,
    ),
    "groups": ProjectForm(
        groups.next_group_moves,
        groups.mark_group_begun,
        groups.settle_group_job,
        groups.mark_group_merged,
    ),
    "pipeline": ProjectForm(
        pipeline.next_stage_moves,
        pipeline.mark_stage_begun,
        pipeline.settle_stage_job,
        pipeline.mark_stage_merged,
    ),
}

"""The three forms of a project as one interface: what is next, and what came of it."""

from __future__ import annotations

from typing import Protocol

from protocol.project import Ended, ProjectRecord, Running
from protocol.project_requests import Work
from protocol.project_start import FormName
from workflows import features, groups, pipeline
from workflows.moves import Assign, Move


class Form(Protocol):
    """The functions that each of the three modules has."""

    def next_moves(self, project: ProjectRecord) -> list[Move]:
        """What the state asks for."""

    def begun(self, project: ProjectRecord, move: Assign) -> None:
        """Mark what a job is begun for."""

    def settle(self, project: ProjectRecord, run: Running, ended: Ended, work: Work | None) -> str:
        """Take in what came of a job; the commit that is to be merged, or nothing."""

    def merged(
        self, project: ProjectRecord, run: Running, conflicts: list[str], commit: str
    ) -> None:
        """Take in what came of merging it."""


OF_FORM = (
    *("features", "groups", "stages", "scope"),
    *("wave", "planning", "planned", "finished", "findings"),
)
"""Fields of the record that `settle` and `merged` may change: the other ones can meanwhile, by what
children tell and people send."""
FORMS: dict[FormName, Form] = {"features": features, "groups": groups, "pipeline": pipeline}

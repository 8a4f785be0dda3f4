"""The forms of a project and how they differ, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FormName = Literal["features", "groups", "pipeline"]


@dataclass(frozen=True)
class FormSpec:
    """A row of the table of forms."""

    unit: str
    """People's name for the part that a job works on."""
    units_key: str
    """Key of the units in the state file."""
    state_file: str
    roles: tuple[str, ...] = ()
    """The roles of its jobs. A pipeline has none: its stages name their agents."""
    divided: bool = True
    """Whether a job covers only a part of the project's scope."""


FORM_SPECS: dict[FormName, FormSpec] = {
    "features": FormSpec(
        unit="feature",
        units_key="features",
        state_file="feature-list.json",
        roles=("initializer", "coder", "tester"),
    ),
    "groups": FormSpec(
        unit="group", units_key="groups", state_file="groups.json", roles=("manager", "worker")
    ),
    "pipeline": FormSpec(
        unit="stage", units_key="stages", state_file="pipeline.json", divided=False
    ),
}
"""A new form needs a row here and a module of pure functions in `workflows.forms`."""

"""The typed files that agents of a project answer with."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from protocol.data_model import Data
from protocol.proof import Check, Tests

ReportKind = Literal["", "features", "groups", "verdict"]
"""The typed file that a job writes besides its work."""
REPORT_FILES: dict[ReportKind, str] = {
    "features": "output/features.json",
    "groups": "output/groups.json",
    "verdict": "output/verdict.json",
}
MOST_FEATURES = 100
MOST_GROUPS = 100
SETUP = "setup"
SCOPE = "scope"
"""Pseudo-units of the planning jobs (initializer, manager); no real unit has these names."""


def _check_unit_id_is_free(name: str) -> str:
    if name in (SETUP, SCOPE):
        raise ValueError(f"{name} is kept for the system; choose another id")
    return name


UnitId = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$"), AfterValidator(_check_unit_id_is_free)
]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Paragraph = Annotated[str, Field(min_length=1, max_length=800)]
Finding = Annotated[str, Field(min_length=1, max_length=4000)]


class FeatureEntry(Data):
    """A feature as the initializer described it."""

    id: UnitId
    description: Paragraph
    checks: list[Check] = Field(min_length=1, max_length=4)
    tests: Tests = Field(default_factory=dict)
    """The command of each check, where the project's file does not fix it."""
    coverage: float | None = Field(None, gt=0, le=100)
    """Least percentage of the code that tests must cover."""
    items: list[Line] = Field(default_factory=list, max_length=20)


class FeatureReport(Data):
    """`output/features.json`."""

    features: list[FeatureEntry] = Field(min_length=1, max_length=MOST_FEATURES)

    @model_validator(mode="after")
    def _check_feature_ids_differ(self) -> Self:
        ids = [feature.id for feature in self.features]
        if twice := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
            raise ValueError(f"two features have the id {', '.join(twice)}")
        return self


class GroupEntry(Data):
    """A group as the manager described it."""

    id: UnitId
    title: Line
    task: Annotated[str, Field(max_length=800)] = ""
    items: list[str] = Field(min_length=1, max_length=200)
    after: list[str] = Field(default_factory=list, max_length=20)
    """Groups that must be finished before this one begins."""


class DroppedItem(Data):
    id: str
    reason: Line


class Routing(Data):
    """`output/groups.json`."""

    groups: list[GroupEntry] = Field(default_factory=list, max_length=MOST_GROUPS)
    drop: list[DroppedItem] = Field(default_factory=list, max_length=MOST_GROUPS)
    complete: bool = False
    """Whether every item is done, or blocked with a reason."""


class CheckResult(Data):
    check: Check
    passed: bool
    detail: Annotated[str, Field(max_length=4000)] = ""


class TesterVerdict(Data):
    """`output/verdict.json`."""

    health: Paragraph
    checks: list[CheckResult] = Field(min_length=1, max_length=20)
    coverage: float | None = Field(None, ge=0, le=100)
    passed: bool
    findings: list[Finding] = Field(default_factory=list, max_length=20)

"""The start input of a project."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from protocol.agent_reports import Line, UnitId
from protocol.data_model import Data
from protocol.handoffs import OnFailure
from protocol.limits import Budget
from protocol.proof import Check, Tests
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart
from protocol.teams import TeamName
from protocol.todo_list import DoneWhen

FormName = Literal["features", "groups", "pipeline"]


@dataclass(frozen=True)
class FormSpec:
    """A row of the table of forms."""

    unit: str
    """People's name for the part that a job works on."""
    units_key: str
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
"""A new form needs a row here and a module of pure functions in `workflows.rules.forms`."""


DEFAULT_AGENTS = {"worker": "generalist"}
MOST_SECONDS = 10**12
"""Upper bound of deadlines: Temporal's timers take no 10 ** 20 seconds."""


class StageStart(Data):
    """One station of a pipeline."""

    agent: str = Field(min_length=1)
    id: UnitId | None = None
    task: str = Field("", max_length=10_000)
    documents: list[str] = Field(default_factory=list, max_length=1000)
    items: list[str] = Field(default_factory=list, max_length=2000)
    needs: list[DoneWhen] = Field(default_factory=list, max_length=20)
    delivers: list[DoneWhen] = Field(default_factory=list, max_length=20)
    success: list[Line] = Field(default_factory=list, max_length=20)
    deadline: int | None = Field(None, ge=1, le=MOST_SECONDS)
    on_failure: OnFailure = "retry"
    set: dict[str, Any] = Field(default_factory=dict)


class ProjectStart(Data):
    """Input of the workflow `Project`, and form of a project's YAML file."""

    form: FormName
    title: str = Field("", max_length=200)
    instructions: str = Field("", max_length=200_000)
    documents: list[str] = Field(default_factory=list, max_length=1000)
    items: list[Line] = Field(default_factory=list, max_length=2000)
    """The scope of `groups`."""
    stages: list[StageStart] = Field(default_factory=list, max_length=50)
    agents: dict[str, str] = Field(default_factory=dict)
    """Agents in place of the default ones, by role: initializer, coder, tester, manager, worker."""
    product: str = Field("repo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    """The folder of each workspace that holds the project's files."""
    repository: RepositoryStart | None = None
    """The repository that it begins from; None for an empty one."""
    publish: Publish | None = None
    """Where its branch is pushed at the end."""
    parallel: int = Field(4, ge=1, le=50)
    attempts: int = Field(2, ge=1, le=20)
    tests: Tests = Field(default_factory=dict)
    """For `features`: the command that proves each check. For other checks the initializer names a
    command per feature."""
    needs: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default_factory=list, max_length=20
    )
    """Commands that must work in the sandbox before the project begins."""
    proof: dict[Check, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """Tools whose result proves a check that no command can perform."""
    success: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """Conditions on the project's files before a project of `groups` may end."""
    deadline: int | None = Field(None, ge=1, le=MOST_SECONDS)
    limits: Budget = Field(default_factory=Budget)
    set: dict[str, Any] = Field(default_factory=dict)
    notify: dict[str, Any] | None = None
    """Notifications for the project and its jobs, as in an agent's file; null uses the agent's."""
    team: TeamName | Literal[""] = ""
    """Whose quota its jobs count for, and whose spend they are."""
    by: str = Field("", max_length=100)
    """Who starts it; the command line fills it in."""
    history_events: int = Field(1000, ge=10, le=10_000)
    """Events after which the project continues as new, once no job is running."""

    @model_validator(mode="after")
    def _fits_its_form(self) -> Self:
        if (self.form == "pipeline") is not bool(self.stages):
            raise ValueError("stages: the form pipeline has stages, and no other form has")
        tasks = [stage.task.strip() for stage in self.stages]
        if not self.instructions.strip() and not (tasks and all(tasks)):
            raise ValueError("instructions: field required")
        if self.tests and self.form != "features":
            raise ValueError("tests: the form features has tests, and no other form has")
        if named := [check for check, tools in self.proof.items() if "run_command" in tools]:
            raise ValueError(
                f"proof: run_command proves nothing by itself; name the command of {named[0]} "
                "under `tests`, and the system runs it"
            )
        ids = self.stage_ids
        if len(set(ids)) < len(ids):
            raise ValueError(
                "stages: two have the same id; one without an id is called by its place, as stage-2"
            )
        if self.publish:
            self.publish = self.publish.completed(self.repository)
        known = {role for spec in FORM_SPECS.values() for role in spec.roles}
        if strange := sorted(self.agents.keys() - known):
            raise ValueError(
                f"agents: {', '.join(strange)} is no role; the roles are {', '.join(sorted(known))}"
            )
        return self

    @property
    def stage_ids(self) -> list[str]:
        return [stage.id or f"stage-{number}" for number, stage in enumerate(self.stages, 1)]

    def agent(self, role: str) -> str:
        return self.agents.get(role, DEFAULT_AGENTS.get(role, role))

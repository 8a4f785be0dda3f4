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
    """`features`, `groups` or `pipeline`."""
    title: str = Field("", max_length=200)
    """A name for people; the first line of the instructions if left out."""
    instructions: str = Field("", max_length=200_000)
    """What to build. Every agent gets them."""
    documents: list[str] = Field(default_factory=list, max_length=1000)
    """As for a job, but paths in a file are relative to it; for the agents that plan, and those
    that work in groups or stages."""
    items: list[Line] = Field(default_factory=list, max_length=2000)
    """`groups`: the scope; if left out, the list under `Scope` in the instructions."""
    stages: list[StageStart] = Field(default_factory=list, max_length=50)
    """`pipeline`: stages in order, each with `agent`, `task` and a stage's other keys."""
    agents: dict[str, str] = Field(default_factory=dict)
    """Agents to use for the roles initializer, coder, tester, manager, worker."""
    product: str = Field("repo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    """Folder with the project's files in each workspace; `repo` if left out."""
    repository: RepositoryStart | None = None
    """The repository or folder it [begins from](repositories.md), `{url, ref, depth}` or
    `{folder}`; an empty repository if left out."""
    publish: Publish | None = None
    """The branch to which its work is pushed at the end: `{remote, branch}`."""
    parallel: int = Field(4, ge=1, le=50)
    """Groups that work at the same time; 4 if left out."""
    attempts: int = Field(2, ge=1, le=20)
    """Jobs on one feature, group or stage before it is blocked; 2 if left out."""
    tests: Tests = Field(default_factory=dict)
    """`features`: the command that [proves](#proof) each check (`unit`, `api`, `db`); the
    initializer names commands that are missing here."""
    needs: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default_factory=list, max_length=20
    )
    """Commands that must succeed in the sandbox before the project begins, such as `python3 -m
    pytest --version`."""
    proof: dict[Check, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """For checks without a command (`browser`): tools whose results prove that the check was made.
    """
    success: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """`groups`: conditions on the project's files that must hold before it may end."""
    deadline: int | None = Field(None, ge=1, le=MOST_SECONDS)
    """Time limit of each job, in seconds."""
    limits: Budget = Field(default_factory=Budget)
    """Limits for all jobs together: model_calls, tool_calls, tokens, cost, seconds."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Configuration for every job of the project."""
    notify: dict[str, Any] | None = None
    """Where messages about the project and its jobs are sent, like an agent's
    [`notify`](people.md#notifications); that of its agents if left out."""
    team: TeamName | Literal[""] = ""
    """The [team](people.md#teams) whose quota its jobs count for, and whose spend they are."""
    by: str = Field("", max_length=100)
    """Who starts it; `starter.py` fills it in."""
    history_events: int = Field(1000, ge=10, le=10_000)
    """Events after which the project continues as new; 1000 if left out."""

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

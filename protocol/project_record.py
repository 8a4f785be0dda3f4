"""What workflow code remembers of a project; carried over when it continues as new."""

from typing import Literal

from pydantic import Field

from protocol import project_units
from protocol.data_model import Data
from protocol.job_record import MOST_BYTES
from protocol.job_state import Remark
from protocol.limits import Budget
from protocol.notices import Notice
from protocol.notification_requests import Notifying
from protocol.payloads import ReceivedSignal
from protocol.project_start import ProjectStart
from protocol.repository_start import PinnedSource
from protocol.scope_ledger import ScopeItem
from protocol.trace_requests import Trace
from protocol.usage import Progress, Usage
from protocol.waiting import WaitState


class ProjectRecord(Data):
    """Everything a project remembers; carried over when it continues as new."""

    start: ProjectStart
    id: str
    title: str
    root: str
    remote: str = ""
    repository: str
    """Path of the git repository on the worker, for people."""
    origin: PinnedSource | None = None
    head: str
    state: str = ""
    """Newest commit of the project's own files."""
    features: list[project_units.Feature] = Field(default_factory=list)
    groups: list[project_units.Group] = Field(default_factory=list)
    stages: list[project_units.Stage] = Field(default_factory=list)
    scope: list[ScopeItem] = Field(default_factory=list)
    wave: int = 0
    planning_attempts: int = 0
    """Attempts of the planning job (initializer or manager) since it last succeeded."""
    planned: bool = False
    """Whether the current wave is planned, so that its groups work and no manager is due."""
    finished: bool = False
    """Whether a manager's claim of completion was accepted."""
    findings: list[str] = Field(default_factory=list)
    set_up_report: str = ""
    """What the initializer says of its work."""
    begun_jobs: dict[str, int] = Field(default_factory=dict)
    remarks: list[Remark] = Field(default_factory=list)
    """People's remarks to the project; every new job gets them."""
    results: list[str] = Field(default_factory=list)
    """Newest summaries of accepted work, for later jobs."""
    left_open: dict[str, list[str]] = Field(default_factory=dict)
    """Unresolved entries of accepted work, by unit and role; those of the newest job only."""
    running: dict[str, project_units.RunningJob] = Field(default_factory=dict)
    ended_jobs: list[project_units.EndedJob] = Field(default_factory=list)
    job_summaries: list[project_units.JobSummary] = Field(default_factory=list)
    waits: list[project_units.PersonWait] = Field(default_factory=list)
    trace_count: int = 0
    traces: list[Trace] = Field(default_factory=list)
    started_at: str = ""
    jobs: int = 0
    limits: Budget = Field(default_factory=Budget)
    usage: Usage = Field(default_factory=Usage)
    progress: Progress = Field(default_factory=Progress)
    seconds: float = 0.0
    clock: float = 0.0
    search_attributes: list[str] = Field(default_factory=list)
    notifying: Notifying | None = None
    """Whom it notifies, also for its jobs."""
    waiting: WaitState | None = None
    publish_decision: Literal["", "approved", "denied"] = ""
    """A person's decision on pushing its branch; empty before it, or when none is required."""
    refusals: int = 0
    notices: list[Notice] = Field(default_factory=list)
    inbox: list[ReceivedSignal] = Field(default_factory=list)
    result: project_units.ProjectResult | None = None

    @property
    def units(self) -> list[project_units.Unit]:
        return [*self.features, *self.groups, *self.stages]

    @property
    def ended_runs(self) -> list[project_units.RunningJob]:
        return [self.running[each.job] for each in self.ended_jobs if each.job in self.running]

    @property
    def unended_runs(self) -> list[project_units.RunningJob]:
        over = [run.job for run in self.ended_runs]
        return [run for run in self.running.values() if run.job not in over]

    @property
    def size(self) -> int:
        """Bytes of the record for a new run, which begins while no job is running."""
        resting = self.model_copy(update={"running": {}, "ended_jobs": []})
        return len(resting.model_dump_json(exclude_defaults=True).encode())

    @property
    def fits(self) -> bool:
        """Whether a new run can take the record, with unread signals and notes."""
        return self.size <= MOST_BYTES

    def find_unit(self, unit_id: str) -> project_units.Unit | None:
        return next((unit for unit in self.units if unit.id == unit_id), None)

    def count_time(self, now: float, *, still: bool) -> None:
        """Add the time since the last count, unless the project stood still."""
        if not still:
            self.seconds = round(self.seconds + max(0.0, now - self.clock), 3)
        self.clock = now

"""The content of a report. The page shows this and nothing else; `--json` prints it.

Its size is bounded. Text from agents and documents is redacted, on one line where required, and
without characters that control a terminal or reverse text. Times are UTC; money is in the price
table's currency.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from cli.trials.trial_summary import TrialConfigurationSummary
from protocol.data_model import Data
from protocol.status import JobStatus, ProjectStatus, TrialStatus
from protocol.usage import Usage

MOST_PHASES = 500
MOST_LISTED = 200
MOST_JOBS = 50
"""Most jobs of a project in a report; the newest."""
MOST_HABITS = 8
"""Most patterns of mistakes in a report; the most frequent."""
MOST_COMPARED = 60
"""Most jobs over which a pattern is counted; the newest."""
BARS = 160
"""Most bars of a chart over steps; a longer job has several steps to a bar."""

Kind = Literal["gate", "guard", "person", "phase rule", "reply", "signal", "tool error"]
"""Source of a refusal: a transition's gate, a guard or hook, a person, a phase rule or an unknown
tool, the check of replies, the check of signals, or a failed tool."""


class Figures(Usage):
    """What a job used, and further figures. None means unreadable; `remarks` say why."""

    phases: int
    steps: int
    rewinds: int
    refusals: int
    text_replies: int | None = None
    """Refusals of replies without tool calls."""
    tool_errors: int | None = None
    nudges: int | None = None
    clarifications: int | None = None
    completions_refused: int | None = None
    completions_accepted: int = 0
    completions_let_through: int = 0
    """Completions accepted despite something open or missing without a reason. The goal is 0."""
    retries: int | None = None
    """Attempts of activities after the first."""
    wall_seconds: float | None = None
    waiting_seconds: float | None = None
    """Seconds in which the job showed as waiting."""

    @property
    def cached_share(self) -> float | None:
        """Share of prompt tokens read from the cache, from 0 to 1."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


class PhaseLine(Usage):
    """A phase and what it used."""

    number: int
    kind: Literal["strategic", "tactical"]
    purpose: str
    name: str
    outcome: str
    """running, completed, rewound, closed."""
    undone: bool = False
    issue: str = ""
    by: str = ""
    """The person who rewound it; empty without one."""
    todos: int = 0
    """Number of todos, without those that were passed over."""
    todos_done: int = 0
    todos_not_needed: int = 0
    """Number of open todos closed by the end of the job."""
    started: datetime
    ended: datetime | None = None
    refusals: int = 0


class Wait(Data):
    """A period in which the job showed as waiting."""

    reason: str
    started: datetime
    ended: datetime | None = None


class Bar(Usage):
    """One step or several consecutive ones: sums, except for the largest prompt."""

    first: int
    last: int
    largest_prompt: int = 0

    @property
    def fresh_tokens(self) -> int:
        """Prompt tokens that were not cached."""
        return self.prompt_tokens - self.cached_tokens


class RefusalLine(Data):
    """Refusals of one tool by one gate, guard or rule for one reason."""

    kind: Kind
    by: str
    tool: str = ""
    count: int
    reason: str = ""
    first_step: int | None = None
    last_step: int | None = None


class Proof(Data):
    """A claim that the system verified before it counted."""

    phase: int
    claim: str
    """The claim: completion of a todo, a phase or the job."""
    held: str
    """The verified condition."""
    by: Literal["done_when", "verifier", "judge", "review"]


class Deliverable(Data):
    """A delivered file, or a folder with its content."""

    path: str
    bytes: int = 0
    files: int = 1
    problem: str = ""
    """Why it does not count: it does not exist or is empty."""


class Pattern(Data):
    """A pattern to watch for, and whether this job shows it."""

    name: str
    title: str
    figure: str
    found: bool
    meaning: str
    details: list[str] = Field(default_factory=list)


class Repeats(Data):
    """How often a pattern of mistakes occurred in a job."""

    job: str
    refused: int = 0
    """Number of refusals and corrections."""
    tried: int = 0
    """Number of hits by a guard on trial, which refuses nothing."""
    here: bool = False
    """Whether the report is on this job."""


class Habit(Data):
    """A pattern of mistakes over the jobs of its agent, in chronological order."""

    agent: str
    tool: str = ""
    by: str
    """The guard, hook, gate or person that refused."""
    lesson: str = ""
    """The correct behaviour, as learned."""
    trend: Literal["growing", "steady", "falling"]
    guards: list[str] = Field(default_factory=list)
    """Guards learned from it, each with its stage."""
    jobs: list[Repeats] = Field(default_factory=list)

    @property
    def times(self) -> int:
        """Number of occurrences, refused or not."""
        return sum(job.refused + job.tried for job in self.jobs)

    @property
    def met(self) -> int:
        """Number of jobs with an occurrence."""
        return sum(bool(job.refused + job.tried) for job in self.jobs)


class Report(Data):
    """A job's report."""

    version: Literal[2] = 2
    status: JobStatus
    """What `show --json` prints, with credentials redacted."""
    started: datetime | None = None
    ended: datetime | None = None
    read: datetime
    """When the report was made."""
    link: str | None = None
    """Its page in Temporal's Web UI."""
    figures: Figures
    phases: list[PhaseLine] = Field(default_factory=list)
    waits: list[Wait] = Field(default_factory=list)
    steps: list[Bar] = Field(default_factory=list)
    refusals: list[RefusalLine] = Field(default_factory=list)
    evidence: list[Proof] = Field(default_factory=list)
    """Newest verified claims, by `done_when`, verifiers, a judge or a review."""
    deliverables: list[Deliverable] = Field(default_factory=list)
    traces: list[dict[str, Any]] = Field(default_factory=list)
    patterns: list[Pattern] = Field(default_factory=list)
    habits: list[Habit] = Field(default_factory=list)
    """Patterns of its agent over all jobs; a project's report has them once, for all its jobs."""
    remarks: list[str] = Field(default_factory=list)
    """What could not be read or was omitted."""


class ProjectReport(Data):
    """The reports of a project's jobs."""

    version: Literal[2] = 2
    status: ProjectStatus
    read: datetime
    jobs: list[Report]
    habits: list[Habit] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)
    """As in a report, plus jobs that are missing here."""


class TrialReport(Data):
    """A trial's report."""

    version: Literal[2] = 2
    status: TrialStatus
    started: datetime
    ended: datetime | None = None
    read: datetime
    link: str | None = None
    configurations: list[TrialConfigurationSummary]
    links: dict[str, str] = Field(default_factory=dict)
    """Pages of the runs in Temporal's Web UI."""
    remarks: list[str]


AnyReport = Report | ProjectReport | TrialReport

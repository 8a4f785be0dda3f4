"""The content of a report. The page shows this and nothing else; `--json` prints it.

Bounded whatever the job's length. Every text that an agent or a document wrote is redacted, on
one line where it has to be, and without characters that steer a terminal or turn text around.
Times are UTC; money is in the price table's currency.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from protocol.state import Data

MOST_PHASES = 500
MOST_LISTED = 200
MOST_JOBS = 50
"""Of a project, those that began last."""
MOST_HABITS = 8
"""Patterns of mistakes, the most frequent."""
MOST_COMPARED = 60
"""Jobs that a pattern is counted over, the newest."""
BARS = 160
"""Most bars of a chart over steps; a longer job has several steps to a bar."""

Kind = Literal["gate", "guard", "person", "phase rule", "reply", "signal", "tool error"]
"""What refused: a gate on a transition, a guard or hook, a person, a rule of the phase or an
unknown tool, the check of replies, of signals; or a tool itself, which failed."""


class Head(Data):
    """The job itself."""

    id: str
    title: str = ""
    agent: str = ""
    model: str = ""
    status: str
    error: str = ""
    """Why it failed, if it did."""
    waiting: str = ""
    """The reason, while it waits."""
    message: str = ""
    remedy: str = ""
    summary: str = ""
    confidence: float | None = None
    notes: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    read: datetime
    """When the report was made."""
    link: str | None = None
    """Its page in Temporal's Web UI."""


class Figures(Data):
    """None is what could not be read; `remarks` of the report say why."""

    phases: int
    steps: int
    model_calls: int
    sent_calls: int = 0
    """Tool calls as the endpoint sent them, those of a reviewer among them."""
    tool_calls: int
    """Of these, those that were run."""
    refused_calls: int = 0
    failed_calls: int = 0
    """Run, and ended in an error."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    written_tokens: int = 0
    cost: float
    rewinds: int
    refusals: int
    text_replies: int | None = None
    """Of the refusals, replies of the model that called no tool."""
    tool_errors: int | None = None
    nudges: int | None = None
    clarifications: int | None = None
    completions_refused: int | None = None
    completions_accepted: int = 0
    completions_let_through: int = 0
    """Accepted although something was open, or missing, and not explained. The goal is none."""
    retries: int | None = None
    """Attempts of activities after the first."""
    wall_seconds: float | None = None
    waiting_seconds: float | None = None
    """Of these, in which the job showed as waiting."""

    @property
    def cached_share(self) -> float | None:
        """Of the prompt tokens, from 0 to 1."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


class PhaseLine(Data):
    """A phase, and what was spent on it."""

    number: int
    kind: Literal["strategic", "tactical"]
    purpose: str
    name: str
    outcome: str
    """running, completed, rewound, closed."""
    undone: bool = False
    issue: str = ""
    by: str = ""
    """The person who took it back."""
    todos: int = 0
    """Without those that were not needed."""
    todos_done: int = 0
    todos_not_needed: int = 0
    """Closed by the end of the job, and done by nobody."""
    started: datetime
    ended: datetime | None = None
    model_calls: int = 0
    sent_calls: int = 0
    tool_calls: int = 0
    refused_calls: int = 0
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    refusals: int = 0


class Wait(Data):
    """A time in which the job showed as waiting."""

    reason: str
    started: datetime
    ended: datetime | None = None


class Bar(Data):
    """One step, or several in a row: sums, but for the largest prompt."""

    first: int
    last: int
    model_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    completion_tokens: int = 0
    largest_prompt: int = 0
    cost: float = 0.0


class RefusalLine(Data):
    """What one gate, guard or rule refused of one tool for one reason."""

    kind: Kind
    by: str
    tool: str = ""
    count: int
    reason: str = ""
    """In the words of the newest."""
    first_step: int | None = None
    last_step: int | None = None


class Item(Data):
    """A line of the scope ledger."""

    id: str
    text: str
    status: str
    source: str
    reason: str = ""


class Decision(Data):
    """A call that a person was asked about."""

    tool: str
    guard: str
    approved: bool
    by: str = ""
    """Empty where nobody said who it was."""
    at: datetime | None = None
    reason: str = ""


class Act(Data):
    """What a person did by a signal."""

    at: datetime | None = None
    """When the signal came in."""
    by: str = ""
    """Empty where nobody said who it was."""
    phase: int = 0
    did: str
    """As the rest of a sentence: `paused the job`."""
    detail: str = ""
    refused: str = ""
    """Why the job did not take it."""


class Scope(Data):
    """The scope ledger."""

    original: int = 0
    completed: int = 0
    added: int = 0
    dropped: int = 0
    open: int = 0
    items: list[Item] = Field(default_factory=list)
    """The first; those that are open or dropped go before."""


class Proof(Data):
    """Something that the system looked up before it counted."""

    phase: int
    claim: str
    """What was said to be done: a todo, the end of a phase or of the job."""
    held: str
    """What was found to hold."""
    by: Literal["done_when", "verifier", "judge", "review"]


class Deliverable(Data):
    """A file, or a folder with what is in it."""

    path: str
    bytes: int = 0
    files: int = 1
    problem: str = ""
    """Why it is none: it does not exist, it is empty."""


class Pattern(Data):
    """Something watched for, and whether this job shows it."""

    name: str
    title: str
    figure: str
    found: bool
    meaning: str
    details: list[str] = Field(default_factory=list)


class Repeats(Data):
    """How often a job met with a pattern of mistakes."""

    job: str
    refused: int = 0
    """Refused or corrected."""
    tried: int = 0
    """Seen by a guard on trial, which lets pass."""
    here: bool = False
    """Whether this is the job of the report."""


class Habit(Data):
    """A pattern of mistakes, over the jobs of its agent in the order of time."""

    agent: str
    tool: str = ""
    by: str
    """Who refused: a guard, a hook, a gate, a person."""
    lesson: str = ""
    """What was said of what is right."""
    trend: Literal["growing", "steady", "falling"]
    guards: list[str] = Field(default_factory=list)
    """Learned guards that it led to, each with its stage."""
    jobs: list[Repeats] = Field(default_factory=list)

    @property
    def times(self) -> int:
        """How often it was refused or seen."""
        return sum(job.refused + job.tried for job in self.jobs)

    @property
    def met(self) -> int:
        """In how many jobs."""
        return sum(bool(job.refused + job.tried) for job in self.jobs)


class Report(Data):
    """A job's report."""

    version: Literal[1] = 1
    job: Head
    figures: Figures
    phases: list[PhaseLine] = Field(default_factory=list)
    waits: list[Wait] = Field(default_factory=list)
    steps: list[Bar] = Field(default_factory=list)
    refusals: list[RefusalLine] = Field(default_factory=list)
    scope: Scope = Field(default_factory=Scope)
    evidence: list[Proof] = Field(default_factory=list)
    """What `done_when` of todos, verifiers, a judge or a review found to hold; the newest."""
    deliverables: list[Deliverable] = Field(default_factory=list)
    unresolved: list[str] = Field(default_factory=list)
    people: list[Act] = Field(default_factory=list)
    """What people did, the newest, as the job itself keeps it."""
    decisions: list[Decision] = Field(default_factory=list)
    """The newest, as the job itself keeps them."""
    remarks_of_people: list[str] = Field(default_factory=list)
    """What was said to the agent, with who said it."""
    notices: list[str] = Field(default_factory=list)
    traces: list[dict[str, Any]] = Field(default_factory=list)
    patterns: list[Pattern] = Field(default_factory=list)
    habits: list[Habit] = Field(default_factory=list)
    """Of its agent, over all jobs; a project's report has them once, for all its jobs."""
    remarks: list[str] = Field(default_factory=list)
    """What could not be read, and what is left out."""


class Output(Data):
    """A run of a check."""

    told: str
    """Command, exit code, counts; who asked for it, when, and on which commit."""
    end: str = ""
    cut: bool = False
    """Whether there was more before that."""


class UnitLine(Data):
    """A feature, group or stage of a project."""

    id: str
    title: str
    status: str
    attempts: int
    story: list[str] = Field(default_factory=list)
    """The jobs that worked on it and why each failed, its commit, what would unblock it."""
    runs: list[Output] = Field(default_factory=list)
    """What proves it, or shows that it fails."""


class ProjectReport(Data):
    """The reports of a project's jobs."""

    version: Literal[1] = 1
    id: str
    title: str = ""
    status: str
    units: list[UnitLine] = Field(default_factory=list)
    waits: list[str] = Field(default_factory=list)
    """Which jobs waited for a person, and how long."""
    jobs: list[Report]
    habits: list[Habit] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)
    """As of a report; whose jobs are not here."""
